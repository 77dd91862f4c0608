import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  createSecret,
  getSecret,
  listOperators,
  listSecrets,
  maximumSecretBytes,
  removeSecret,
  rotateSecretsKey,
  type Secret,
  updateSecret,
} from '@muster/protocol/http';
import type { Connection, Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { chooseAgent } from '../../execution/choose-agents.ts';
import { removeEach } from '../../execution/each.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { nearest } from '../../text/nearest.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, counted, duration, type Style, when } from '../../text/style.ts';
import { parseMoment } from '../../text/values.ts';

interface Terms {
  description?: string;
  expires?: string;
  agent?: string[];
  selector?: string;
  anyone?: boolean;
}

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List secrets, without their values')
    .addHelpText('after', '\nExample:\n  $ muster secrets list')
    .action(act(list));
  command
    .command('get')
    .description('Show the metadata of a secret; its value is never shown')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  $ muster secrets get db_password')
    .action(act(get));
  const terms = (verb: ReturnType<typeof command.command>) =>
    verb
      .option('--description <text>', 'Description; an empty text removes it')
      .option('--expires <when>', 'Expiry: 90d, 2027-01-31, a time, or never')
      .option('--agent <agents...>', 'Only these agents may use it')
      .option('-l, --selector <selector>', 'Only matching agents may use it')
      .option('--anyone', 'Every approved agent may use it');
  terms(
    command
      .command('set')
      .description('Create a secret, or change its value; properties that you do not give stay unchanged')
      .argument('<name>')
      .option('--file <file>', 'Read the value from this file, byte for byte'),
  )
    .addHelpText(
      'after',
      '\nWithout --file, the value is read from a prompt without echo, or from standard input when that is not a terminal; a\ntrailing newline is then dropped. A value is never an argument: others could see it in the process list.\n\nExamples:\n  $ muster secrets set db_password --selector role=web\n  $ pwgen 32 1 | muster secrets set db_password --expires 90d\n  $ muster secrets set site_key --file site.pem --agent web-1',
    )
    .action(act(set));
  terms(
    command.command('update').description('Change the properties of a secret, but not its value').argument('<name>'),
  )
    .addHelpText('after', '\nExample:\n  $ muster secrets update db_password --expires 90d')
    .action(act(update));
  command
    .command('remove')
    .description('Remove secrets; files that contain their values stay on the machines')
    .argument('<names...>')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', '\nExample:\n  $ muster secrets remove db_password')
    .action(act(remove));
  command
    .command('rotate-key')
    .description('Encrypt all secrets and channels with a new key')
    .addHelpText(
      'after',
      '\nThe orchestrator keeps working. Back up its keys afterwards: docs/operations.md lists their paths.\n\nExample:\n  $ muster secrets rotate-key',
    )
    .action(act(rotateKey));
};

async function every(call: Client): Promise<Secret[]> {
  const limit = 1000;
  const all: Secret[] = [];
  for (;;) {
    const page = await call(listSecrets, { query: { limit: String(limit), offset: String(all.length) } });
    all.push(...page);
    if (page.length < limit) return all;
  }
}

/** Adds the most similar name to the error and throws it. */
async function suggest(call: Client, secretName: string, error: unknown): Promise<never> {
  if (!(error instanceof ApiError) || error.problem.code !== 'secret_not_found') throw error;
  const near = nearest(
    secretName,
    (await every(call)).map(({ name }) => name),
  );
  throw new CliError(
    exits.failed,
    'secret_not_found',
    `there is no secret ${JSON.stringify(secretName)}`,
    `${near === null ? '' : `Did you mean ${near}? `}List the secrets: muster secrets list`,
    { cause: error },
  );
}

const expiry = ({ expires_at }: Secret, { now }: Style): string | null => {
  if (expires_at === null) return null;
  const left = Math.floor(Date.parse(expires_at) / 1000) - now;
  return left > 0 ? `in ${duration(left)}` : `expired ${ago(now + left, now)}`;
};

const holders = ({ restriction }: Secret): string => {
  if (restriction === null) return 'any agent';
  const { node_ids, tags } = restriction;
  const parts = [
    ...(node_ids === null ? [] : [node_ids.length === 0 ? 'no agent' : counted(node_ids.length, 'named agent')]),
    ...(tags === null ? [] : [tags.trim() === '' ? 'no agent' : tags]),
  ];
  return parts.join(' and ');
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const secrets = await every(call);
  if (out.json) return out.data(secrets);
  if (secrets.length === 0) return out.note('There are no secrets yet. Create one: muster secrets set NAME');
  out.table(
    [
      { heading: 'NAME', text: ({ name }) => name, flexible: true, paint: (text, _, { color }) => color.bold(text) },
      { heading: 'EXPIRES', text: (secret) => expiry(secret, out.style) },
      { heading: 'ALLOWED FOR', text: holders, flexible: true },
      { heading: 'CHANGED', extra: true, text: ({ updated_at }) => when(Date.parse(updated_at) / 1000, out.style) },
      { heading: 'DESCRIPTION', extra: true, text: ({ description }) => description, flexible: true },
    ],
    secrets,
  );
}

async function get(context: Context, name: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const secret = await call(getSecret, { params: { name } }).catch((error: unknown) => suggest(call, name, error));
  if (out.json) return out.data(secret);
  const operators = await call(listOperators, { query: { include_removed: 'true' } });
  const who = (id: string) => sanitiseLine(operators.find(({ operator_id }) => operator_id === id)?.username ?? id);
  out.print(out.style.color.bold(sanitiseLine(secret.name)));
  if (secret.description !== null) out.print(sanitiseLine(secret.description));
  out.print(
    `expires    ${secret.expires_at === null ? 'never' : `${sanitiseLine(secret.expires_at)} (${expiry(secret, out.style)})`}`,
  );
  out.print(`agents     ${sanitiseLine(holders(secret))}`);
  for (const id of secret.restriction?.node_ids ?? []) out.print(`           ${sanitiseLine(id)}`);
  out.print(`created    ${sanitiseLine(secret.created_at)} by ${who(secret.created_by)}`);
  out.print(`changed    ${sanitiseLine(secret.updated_at)} by ${who(secret.updated_by)}`);
}

/** Returns the properties to change, as fields of the API. */
async function termsOf(call: Client, { now }: Context, options: Terms) {
  const { description, expires, agent, selector, anyone } = options;
  if (anyone && (agent !== undefined || selector !== undefined))
    throw usageError('--anyone cannot be combined with --agent or --selector');
  const expires_at =
    expires === undefined || expires === 'never'
      ? expires
      : new Date(parseMoment(expires, now(), 'until') * 1000).toISOString();
  const node_ids =
    agent === undefined
      ? undefined
      : await Promise.all(agent.map(async (each) => (await chooseAgent(call, each)).node_id));
  const restricted = agent !== undefined || selector !== undefined;
  return {
    ...(description === undefined ? {} : { description }),
    ...(expires_at === undefined ? {} : { expires_at: expires_at === 'never' ? null : expires_at }),
    ...(anyone ? { restriction: {} } : {}),
    ...(restricted
      ? {
          restriction: {
            ...(node_ids === undefined ? {} : { node_ids }),
            ...(selector === undefined ? {} : { tags: selector }),
          },
        }
      : {}),
  };
}

async function readValue(context: Context, name: string, file: string | undefined): Promise<string> {
  if (file !== undefined) {
    const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
      const why = error.code === 'ENOENT' ? 'no such file' : error.message;
      throw new CliError(exits.failed, 'file_unreadable', `cannot read ${file}: ${why}`, null, { cause: error });
    });
    if (!isUtf8(bytes)) throw notText(file);
    return bytes.toString('utf8');
  }
  if (context.prompt.interactive) return await context.prompt.secret(`Value of ${name}`);
  const text = await context.stdin({ unseen: true });
  if (text.includes('\ufffd')) throw notText('standard input');
  return text.replace(/\r?\n$/, '');
}

const notText = (where: string): CliError =>
  new CliError(
    exits.failed,
    'not_text',
    `${where} is not UTF-8 text`,
    'Encode it as text first, e.g. with base64, and decode it where it is used.',
  );

/** Refuses to send a secret over plain HTTP, where others could read it. */
function requireEncryption({ target }: Connection): void {
  const { protocol, hostname } = new URL(target.url);
  if (protocol === 'https:' || /^(127(\.\d+){3}|\[::1\]|localhost)$/i.test(hostname)) return;
  throw new CliError(
    exits.failed,
    'plaintext_refused',
    `refusing to send a secret unencrypted to ${target.url}`,
    'Use an https:// address of the orchestrator, or run this on its machine.',
  );
}

async function set(context: Context, name: string, options: Terms & { file?: string }): Promise<undefined> {
  const { out } = context;
  const connection = await context.connect();
  requireEncryption(connection);
  const { call } = connection;
  const terms = await termsOf(call, context, options);
  const value = await readValue(context, name, options.file);
  if (value === '') throw usageError('the value is empty', 'Type it, pipe it in, or read it from a file with --file.');
  if (Buffer.byteLength(value) > maximumSecretBytes)
    throw usageError(`the value is longer than ${maximumSecretBytes / 1024} KiB`);
  const there = await call(getSecret, { params: { name } }).catch((error: unknown) => {
    if (error instanceof ApiError && error.problem.code === 'secret_not_found') return null;
    throw error;
  });
  const secret =
    there === null
      ? await call(createSecret, { body: { name, value, ...terms } })
      : await call(updateSecret, { params: { name }, body: { value, ...terms } });
  if (out.json) out.data(secret);
  const done = there === null ? 'Created' : 'Changed';
  out.print(`${done} ${out.style.color.bold(sanitiseLine(name))}; available to ${sanitiseLine(holders(secret))}.`);
  if (there === null) out.note(`Modules use it as \${{ secrets.${sanitiseLine(name)} }}`);
}

async function update(context: Context, name: string, options: Terms): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const body = await termsOf(call, context, options);
  if (Object.keys(body).length === 0)
    throw usageError('no change was specified', 'To change the value: muster secrets set');
  const secret = await call(updateSecret, { params: { name }, body }).catch((error: unknown) =>
    suggest(call, name, error),
  );
  if (out.json) out.data(secret);
  out.print(`Changed ${out.style.color.bold(sanitiseLine(name))}; available to ${sanitiseLine(holders(secret))}.`);
}

async function remove(context: Context, names: string[], { yes }: { yes?: boolean }): Promise<Exit> {
  const { call } = await context.connect();
  return removeEach(context, names, { yes, noun: 'secret' }, (name) =>
    call(removeSecret, { params: { name } }).catch((error: unknown) => suggest(call, name, error)),
  );
}

async function rotateKey(context: Context): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const progress = out.progress('re-encrypting all secrets');
  const rotation = await call(rotateSecretsKey, {}).finally(() => progress.end());
  if (out.json) out.data(rotation);
  const rest = rotation.unreadable.length === 0 ? 'all values' : 'all other values';
  out.print(
    `Re-encrypted ${counted(rotation.reencrypted, 'value')}; ${rest} now use key ${sanitiseLine(rotation.key_id)}.`,
  );
  if (rotation.retired.length > 0)
    out.print(
      `No value needs ${rotation.retired.length === 1 ? 'key' : 'keys'} ${sanitiseLine(rotation.retired.join(', '))} anymore.`,
    );
  out.note('Back up the keys now: later database backups need the new one.');
  if (rotation.unreadable.length === 0) return exits.done;
  const some = rotation.unreadable.slice(0, 10).join(', ');
  out.warn(
    `failed to decrypt ${counted(rotation.unreadable.length, 'value')}, left unchanged: ${sanitiseLine(some)}${rotation.unreadable.length > 10 ? ', …' : ''}. Restore their key, or set them again.`,
  );
  return exits.partly;
}
