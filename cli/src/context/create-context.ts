import type { OperatorKey } from '../keys/key.ts';
import type { Connection, Context, Parts } from './context.ts';
import { chooseTarget, readProfiles, type Target } from './profile.ts';

/** Creates a command's context. Network code is imported on demand, so that other commands start quickly. */
export function createContext(parts: Parts): Context {
  const closing: (() => void)[] = [];
  let target: Promise<Target> | undefined;
  let key: Promise<OperatorKey> | undefined;
  let connection: Promise<Connection> | undefined;
  const context: Context = {
    ...parts,
    target: () => {
      target ??= readProfiles(parts.env).then((profiles) => chooseTarget(parts.options, parts.env, profiles));
      return target;
    },
    key: () => {
      key ??= Promise.all([import('../keys/key.ts'), import('../keys/passphrase.ts'), context.target()]).then(
        ([{ readKey }, { createPassphrases }, { keyFile }]) =>
          readKey(keyFile, {
            passphrases: createPassphrases(parts.env, parts.prompt),
            agentSocket: parts.env.SSH_AUTH_SOCK,
          }),
      );
      return key;
    },
    connect: () => {
      connection ??= import('./connect.ts').then(({ connectTo }) => connectTo(context, (close) => closing.push(close)));
      return connection;
    },
    close: () => {
      for (const close of closing) close();
    },
  };
  return context;
}
