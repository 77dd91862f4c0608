import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { ApiError } from '@muster/protocol/client';
import { getOperator } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { CliError, exits, usageError } from '../../exit.ts';
import { type OperatorKey, readKey, readPrivate } from '../../keys/key.ts';
import { makeKey, resealKey, useFile, usePublicLine } from '../../keys/make-key.ts';
import { createPassphrases, newPassphrase } from '../../keys/passphrase.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { registerPeople } from './operator-people.ts';

export const register: Register = (command, act) => {
  command
    .command('init')
    .description('Create an operator key, or use an OpenSSH key')
    .option('--force', 'Replace an existing key, which is renamed')
    .option('--passphrase', 'Ask for a passphrase, which each sign-in then needs')
    .option('--passphrase-file <file>', 'Read the passphrase from the first line of this file')
    .option('--from-ssh [file]', 'Use an OpenSSH key; ~/.ssh/id_ed25519 by default')
    .option('--ssh-agent [key]', 'Use a key of ssh-agent; if several, by its comment')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster operator init\n  $ muster operator init --from-ssh\n  $ muster orchestrator --bootstrap-key "$(muster operator whoami --public-key)" --bootstrap-username ada',
    )
    .action(act(init));
  command
    .command('passphrase')
    .description('Change or remove the passphrase of the operator key')
    .option('--remove', 'Remove the passphrase')
    .option('--passphrase-file <file>', 'Read the new passphrase from this file')
    .addHelpText('after', '\nExample:\n  $ muster operator passphrase')
    .action(act(passphrase));
  command
    .command('whoami')
    .description('Show the key in use and its operator')
    .option('--public-key', 'Print only the public key, without asking the orchestrator')
    .addHelpText('after', '\nExample:\n  $ muster operator whoami')
    .action(act(whoami));
  registerPeople(command, act);
};

interface InitOptions {
  force?: boolean;
  passphrase?: boolean;
  passphraseFile?: string;
  fromSsh?: string | true;
  sshAgent?: string | true;
}

async function init(context: Context, options: InitOptions): Promise<undefined> {
  const { out } = context;
  const { keyFile } = await context.target();
  const { key, former } = await installKey(context, keyFile, options);
  if (out.json)
    out.data({ public_key: key.publicKey, operator_id: key.operatorId, key_file: key.path, former_key_file: former });
  out.print(key.publicKey);
  out.note(storageText(key));
  if (former !== null) out.note(`The previous key is kept in ${former}.`);
  // In $(…), another command reads the output, so the next steps are not printed.
  if (out.style.width === null) return undefined;
  out.note(
    `Next: if the orchestrator has no admin yet, run on its machine:\n  sudo muster orchestrator init --username NAME --operator-key ${key.publicKey}\n` +
      `Otherwise ask an admin to run:\n  muster operator add NAME ${key.publicKey}`,
  );
}

function storageText({ storage, path }: OperatorKey): string {
  if (storage === 'agent') return `The key is in ssh-agent; ${path} contains only its public key.`;
  if (storage === 'sealed')
    return `The key is in ${path}. Anyone who has that file and its passphrase can sign in as you.`;
  return `The key is in ${path}. Anyone who has that file can sign in as you.`;
}

async function installKey(
  context: Context,
  path: string,
  { force, passphrase, passphraseFile, fromSsh, sshAgent }: InitOptions,
): Promise<{ key: OperatorKey; former: string | null }> {
  const fileOptions = { replace: force === true, now: context.now };
  const sealed = passphrase === true || passphraseFile !== undefined;
  if ([sealed, fromSsh !== undefined, sshAgent !== undefined].filter(Boolean).length > 1)
    throw usageError('a passphrase, --from-ssh, and --ssh-agent cannot be combined', 'Use only one of them.');
  if (fromSsh !== undefined) {
    const file = resolve(fromSsh === true ? join(context.env.HOME || homedir(), '.ssh', 'id_ed25519') : fromSsh);
    // Reads the key now, so that an invalid key fails here rather than at the first sign-in.
    await readKey(file, keyOptions(context));
    const former = await useFile(path, file, fileOptions);
    return { key: await readKey(path, keyOptions(context)), former };
  }
  if (sshAgent !== undefined) {
    const chosen = await chooseFromAgent(context, sshAgent === true ? null : sshAgent);
    const former = await usePublicLine(path, chosen, fileOptions);
    return { key: await readKey(path, keyOptions(context)), former };
  }
  return await makeKey(path, {
    ...fileOptions,
    passphrase: sealed ? await newPassphrase(context.prompt, passphraseFile) : null,
  });
}

const keyOptions = ({ env, prompt }: Context) => ({
  passphrases: createPassphrases(env, prompt),
  agentSocket: env.SSH_AUTH_SOCK,
});

async function chooseFromAgent({ env }: Context, comment: string | null) {
  const { keysOfAgent } = await import('../../keys/ssh-key.ts');
  const failed = (message: string, remedy: string, cause?: unknown) =>
    new CliError(exits.failed, 'ssh_agent_failed', message, remedy, { cause });
  if (!env.SSH_AUTH_SOCK)
    throw failed('ssh-agent is not running', 'Start one: eval "$(ssh-agent)"; then add a key with ssh-add.');
  const agentKeys = await keysOfAgent(env.SSH_AUTH_SOCK).catch((error: unknown) => {
    throw failed(`ssh-agent does not answer at ${env.SSH_AUTH_SOCK}`, 'Check SSH_AUTH_SOCK.', error);
  });
  const fitting = comment === null ? agentKeys : agentKeys.filter((each) => each.comment === comment);
  const [only] = fitting;
  if (only === undefined)
    throw failed(
      comment === null
        ? 'ssh-agent has no Ed25519 key'
        : `ssh-agent has no Ed25519 key with the comment "${sanitiseLine(comment)}"`,
      agentKeys.length === 0
        ? 'Create one with `ssh-keygen -t ed25519`, and add it with ssh-add.'
        : `Its keys: ${agentKeys.map((each) => sanitiseLine(each.comment)).join(', ')}`,
    );
  if (fitting.length > 1)
    throw failed(
      `ssh-agent has ${fitting.length} matching keys`,
      `Choose one by its comment: ${fitting.map((each) => sanitiseLine(each.comment)).join(', ')}`,
    );
  return only;
}

async function passphrase(
  context: Context,
  options: { remove?: boolean; passphraseFile?: string },
): Promise<undefined> {
  if (options.remove && options.passphraseFile !== undefined)
    throw usageError('--remove cannot be combined with --passphrase-file');
  const { keyFile } = await context.target();
  const key = await readPrivate(keyFile, keyOptions(context));
  const fresh = options.remove ? null : await newPassphrase(context.prompt, options.passphraseFile);
  await resealKey(keyFile, key, fresh);
  const { out } = context;
  if (out.json) out.data({ key_file: keyFile, passphrase: fresh !== null });
  out.note(
    fresh === null
      ? `Removed the passphrase of ${keyFile}. Anyone who has that file can now sign in as you.`
      : `${keyFile} has a new passphrase; earlier copies keep the old one, or none.`,
  );
}

async function whoami(context: Context, options: { publicKey?: boolean }): Promise<undefined> {
  const { out } = context;
  const key = await context.key();
  if (options.publicKey) {
    if (out.json) out.data({ public_key: key.publicKey });
    out.print(key.publicKey);
    return undefined;
  }
  const { call, target } = await context.connect();
  const operator = await call(getOperator, { params: { operator_id: key.operatorId } }).catch((error: unknown) => {
    if (error instanceof ApiError && error.problem.code === 'operator_not_found')
      throw new CliError(
        exits.signIn,
        'operator_unknown',
        `the key ${key.path} does not belong to an operator of this orchestrator`,
      );
    throw error;
  });
  if (out.json) out.data({ ...operator, public_key: key.publicKey, key_file: key.path, url: target.url });
  out.print(`${out.style.color.bold(sanitiseLine(operator.username))} (${operator.role}) at ${target.url}`);
  out.print(`operator id  ${sanitiseLine(operator.operator_id)}`);
  out.print(`public key   ${key.publicKey}`);
  out.print(
    `key file     ${key.path}${key.storage === 'agent' ? ', in ssh-agent' : key.storage === 'sealed' ? ', with a passphrase' : ''}`,
  );
}
