import { ApiError } from '@muster/protocol/client';
import { getOperator } from '@muster/protocol/http';
import type { Context } from '../context.ts';
import { CliError, exits } from '../exit.ts';
import { makeKey } from '../key.ts';
import { sanitiseLine } from '../sanitise.ts';
import type { Register } from '../verb.ts';

export const register: Register = (command, act) => {
  command
    .command('init')
    .description('make an operator key and print its public half')
    .option('--force', 'make another although there is one; the old one is kept under another name')
    .addHelpText(
      'after',
      '\nExample:\n  $ muster operator init\n  $ muster orchestrator --bootstrap-key "$(muster operator whoami --public-key)" --bootstrap-username ada',
    )
    .action(act(init));
  command
    .command('whoami')
    .description('show the key in use and whose it is')
    .option('--public-key', 'print the public key only, without asking the orchestrator')
    .addHelpText('after', '\nExample:\n  $ muster operator whoami')
    .action(act(whoami));
};

async function init(context: Context, options: { force?: boolean }): Promise<undefined> {
  const { out, now } = context;
  const { keyFile } = await context.target();
  const { key, former } = await makeKey(keyFile, { replace: options.force === true, now });
  if (out.json)
    out.data({ public_key: key.publicKey, operator_id: key.operatorId, key_file: key.path, former_key_file: former });
  out.print(key.publicKey);
  out.note(`The key is in ${key.path}; whoever has that file is you.`);
  if (former !== null) out.note(`The former key is kept in ${former}.`);
  out.note(
    `Next, start an orchestrator that knows it:\n  muster orchestrator --bootstrap-key ${key.publicKey} --bootstrap-username NAME\n` +
      'or have an admin of a running one add it as an operator.',
  );
  return undefined;
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
      throw new CliError(exits.signIn, 'operator_unknown', `the key ${key.path} is not an operator’s here`);
    throw error;
  });
  if (out.json) out.data({ ...operator, public_key: key.publicKey, key_file: key.path, url: target.url });
  out.print(`${out.style.color.bold(sanitiseLine(operator.username))} (${operator.role}) at ${target.url}`);
  out.print(`operator id  ${operator.operator_id}`);
  out.print(`public key   ${key.publicKey}`);
  out.print(`key file     ${key.path}`);
  return undefined;
}
