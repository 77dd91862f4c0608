import { logout } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';

export const register: Register = (command, act) => {
  command.addHelpText('after', '\nExample:\n  $ muster logout').action(act(end));
};

async function end(context: Context): Promise<undefined> {
  const { out } = context;
  const { call, session, target } = await context.connect();
  if (await session.isOpen()) await call(logout, {});
  await session.forget();
  if (out.json) out.data({ url: target.url });
  out.print(`Signed out at ${target.url}.`);
}
