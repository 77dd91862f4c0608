import { readFile } from 'node:fs/promises';
import type { Client } from '@muster/protocol/client';
import {
  type Channel,
  channelTypes,
  createChannel,
  getChannel,
  listChannels,
  removeChannel,
  testChannel,
  updateChannel,
} from '@muster/protocol/http';
import type { Command } from 'commander';
import { confirmRemoval } from '../../context/confirm.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachNamed } from '../../execution/each.ts';
import { findId } from '../../execution/find-id.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { nearest } from '../../text/nearest.ts';
import { operatorNames } from '../../text/operator-names.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { type Style, timestamp, when } from '../../text/style.ts';
import { parseChoice } from '../../text/values.ts';

const naming = '\nSpecify a channel by its name, its id, or the beginning or end of its id if only one matches.\n';
const secrets =
  '\nSecrets are read from a file, or from standard input with -: other users of the machine can read a command line.\n';

const withConfig = (command: Command): Command =>
  command
    .option('--to <address>', 'URL of the webhook, or of the ntfy server')
    .option('--to-file <file>', 'Same as --to, read from a file')
    .option('--topic <topic>', 'Topic (ntfy)')
    .option('--secret-file <file>', 'File with the key that signs messages (webhook)')
    .option('--token-file <file>', 'File with the access token (ntfy)');

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List notification channels')
    .addHelpText('after', '\nExample:\n  $ muster channels list')
    .action(act(list));
  command
    .command('show')
    .description('Show a channel, with its secrets masked')
    .argument('<channel>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster channels show on-call`)
    .action(act(show));
  withConfig(
    command
      .command('add')
      .description('Add a channel, which receives all later notifications')
      .argument('<name>', 'name of the channel')
      .argument('<type>', 'One of: webhook, discord, slack, or ntfy'),
  )
    .addHelpText(
      'after',
      `${secrets}\nExamples:\n  $ muster channels add on-call webhook --to https://hooks.example/muster --secret-file ./hook.key\n  $ muster channels add phone ntfy --topic my-fleet`,
    )
    .action(act(add));
  withConfig(command.command('update').description('Change fields of a channel').argument('<channel>'))
    .option('--name <name>', 'New name')
    .option('--no-secret', 'Stop signing messages')
    .option('--no-token', 'Stop using an access token')
    .addHelpText(
      'after',
      `${naming}${secrets}\nExample:\n  $ muster channels update on-call --to https://hooks.example/v2`,
    )
    .action(act(update));
  command
    .command('remove')
    .description('Remove channels and their unsent notifications')
    .argument('<channels...>')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', `${naming}\nExample:\n  $ muster channels remove on-call`)
    .action(act(remove));
  command
    .command('test')
    .description('Send a test notification now')
    .argument('<channels...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster channels test on-call`)
    .action(act(test));
};

interface ConfigOptions {
  to?: string;
  toFile?: string;
  topic?: string;
  secretFile?: string;
  tokenFile?: string;
  /** False with `--no-…`, as commander sets it. */
  secret?: boolean;
  token?: boolean;
}

/** Reads a secret without the trailing newline that editors and `echo` append. */
async function readSecret({ stdin }: Context, file: string): Promise<string> {
  const text =
    file === '-'
      ? await stdin()
      : await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
          throw usageError(`cannot read ${file}: ${error.code ?? error.message}`);
        });
  return text.replace(/\r?\n$/, '');
}

/** Returns the fields to change; null removes a field. */
async function configOf(context: Context, type: Channel['channel_type'], options: ConfigOptions) {
  const { topic } = options;
  if (options.to !== undefined && options.toFile !== undefined)
    throw usageError('--to cannot be combined with --to-file');
  if ([options.toFile, options.secretFile, options.tokenFile].filter((file) => file === '-').length > 1)
    throw usageError('only one option can read standard input (-)');
  const url = options.toFile === undefined ? options.to : await readSecret(context, options.toFile);
  const secret = options.secret === false ? null : options.secretFile;
  const token = options.token === false ? null : options.tokenFile;
  const allowed: Record<Channel['channel_type'], readonly string[]> = {
    webhook: ['--to', '--secret-file'],
    discord: ['--to'],
    slack: ['--to'],
    ntfy: ['--to', '--topic', '--token-file'],
  };
  const typed = { '--topic': topic, '--secret-file': secret, '--token-file': token };
  for (const [flag, value] of Object.entries(typed))
    if (value !== undefined && !allowed[type].includes(flag))
      throw usageError(
        `${flag} does not apply to ${type} channels`,
        `Options of ${type} channels: ${allowed[type].join(', ')}.`,
      );
  return {
    ...(url === undefined ? {} : { [type === 'discord' || type === 'slack' ? 'webhook_url' : 'url']: url }),
    ...(topic === undefined ? {} : { topic }),
    ...(secret === undefined ? {} : { secret: secret === null ? null : await readSecret(context, secret) }),
    ...(token === undefined ? {} : { token: token === null ? null : await readSecret(context, token) }),
  };
}

async function findChannel(call: Client, nameOrId: string): Promise<Channel> {
  const channels = await call(listChannels, {});
  const named = channels.filter(({ name }) => name === nameOrId);
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;
  if (named.length > 1)
    throw new CliError(
      exits.failed,
      'id_ambiguous',
      `${named.length} channels have the name ${JSON.stringify(nameOrId)}`,
      `Use one of the ids: ${named.map(({ id }) => id).join(', ')}`,
    );
  const near = nearest(
    nameOrId,
    channels.map(({ name }) => name),
  );
  const ids = async () => channels.map(({ id }) => id);
  const id = await findId('channel', 'muster channels list', nameOrId, ids).catch((error: unknown) => {
    if (near === null) throw error;
    throw new CliError(
      exits.failed,
      'channel_not_found',
      `there is no channel ${JSON.stringify(nameOrId)}`,
      `Did you mean ${near}? List the channels: muster channels list`,
    );
  });
  const found = channels.find((channel) => channel.id === id);
  if (found) return found;
  throw new CliError(
    exits.failed,
    'channel_not_found',
    `there is no channel ${JSON.stringify(nameOrId)}`,
    'List the channels: muster channels list',
  );
}

/** Returns the destination with its secret parts masked. */
const destinationOf = ({ config }: Channel): string =>
  [config.topic, config.url ?? config.webhook_url].filter((part) => part !== undefined).join(' at ') ||
  'https://ntfy.sh';

/** Describes the health of a channel's deliveries. */
function deliveryText({ delivery }: Channel, style: Style): string {
  // Orchestrators released before this field was added do not report it.
  if (delivery === undefined) return '';
  const { last_delivered_at, last_error } = delivery;
  const last = last_delivered_at === null ? 'nothing delivered yet' : `delivered ${when(last_delivered_at, style)}`;
  return last_error === null ? last : `failing: ${last_error}; ${last}`;
}

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const channels = await call(listChannels, {});
  if (out.json) return out.data(channels);
  if (channels.length === 0)
    return out.note('There are no channels yet. Add one: muster channels add NAME TYPE --to URL');
  out.table(
    [
      { heading: 'NAME', text: ({ name }) => name, flexible: true, paint: (text, _, { color }) => color.bold(text) },
      { heading: 'TYPE', text: ({ channel_type }) => channel_type },
      { heading: 'TO', text: destinationOf, flexible: true },
      { heading: 'DELIVERY', text: (channel) => deliveryText(channel, out.style), flexible: true },
      { heading: 'SINCE', extra: true, text: ({ created_at }) => when(created_at, out.style) },
      { heading: 'CHANNEL', extra: true, text: ({ id }) => id },
    ],
    channels,
  );
}

async function show(context: Context, nameOrId: string): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const { id } = await findChannel(call, nameOrId);
  const channel = await call(getChannel, { params: { id } });
  if (out.json) return out.data(channel);
  const names = await operatorNames(call);
  const rows: [string, string][] = [
    ['channel', channel.id],
    ['type', channel.channel_type],
    ...Object.entries(channel.config).map(([key, value]): [string, string] => [key, String(value)]),
    ['delivery', deliveryText(channel, out.style)],
    ['since', `${timestamp(channel.created_at)}, by ${names.get(channel.created_by) ?? channel.created_by}`],
  ];
  const width = Math.max(...rows.map(([key]) => key.length));
  out.print(out.style.color.bold(sanitiseLine(channel.name)));
  for (const [key, value] of rows) out.print(`${sanitiseLine(key).padEnd(width)}  ${sanitiseLine(value)}`);
}

async function add(context: Context, name: string, typed: string, options: ConfigOptions): Promise<undefined> {
  const { out } = context;
  const channel_type = parseChoice('the type', typed, channelTypes);
  const config = await configOf(context, channel_type, options);
  const needed = channel_type === 'ntfy' ? 'topic' : channel_type === 'webhook' ? 'url' : 'webhook_url';
  if (!(needed in config))
    throw usageError(`a ${channel_type} channel needs ${channel_type === 'ntfy' ? '--topic' : '--to'}`);
  const { call } = await context.connect();
  // The cast is safe, because `configOf` and the orchestrator check that the fields belong to the type.
  const body = { name, channel_type, config } as Parameters<typeof call<typeof createChannel>>[1]['body'];
  const channel = await call(createChannel, { body });
  if (out.json) out.data(channel);
  out.print(
    `Added ${out.style.color.bold(sanitiseLine(channel.name))}. Test it: muster channels test ${sanitiseLine(channel.id)}`,
  );
}

async function update(
  context: Context,
  nameOrId: string,
  options: ConfigOptions & { name?: string },
): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const { id, channel_type, config } = await findChannel(call, nameOrId);
  const changed = await configOf(context, channel_type, options);
  if (options.name === undefined && Object.keys(changed).length === 0)
    throw usageError(
      'no change was specified',
      'Specify at least one of --name, --to, --topic, --secret-file, or --token-file.',
    );
  const body = {
    ...(options.name === undefined ? {} : { name: options.name }),
    // A masked value in the request leaves the stored value unchanged.
    ...(Object.keys(changed).length === 0 ? {} : { config: { ...config, ...changed } }),
  };
  const channel = await call(updateChannel, { params: { id }, body });
  if (out.json) out.data(channel);
  out.print(`Changed ${out.style.color.bold(sanitiseLine(channel.name))}.`);
}

async function remove(context: Context, namesOrIds: string[], { yes }: { yes?: boolean }): Promise<Exit> {
  const { out } = context;
  await confirmRemoval(context, namesOrIds, { yes, noun: 'channel' });
  const { call } = await context.connect();
  const removed: string[] = [];
  const exit = await eachNamed(context, namesOrIds, async (each) => {
    const { id, name } = await findChannel(call, each);
    await call(removeChannel, { params: { id } });
    removed.push(id);
    out.print(`Removed ${sanitiseLine(name)}.`);
  });
  if (out.json) out.data({ removed });
  return exit;
}

async function test(context: Context, namesOrIds: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const tested: { id: string; delivered: boolean; status: number }[] = [];
  const exit = await eachNamed(context, namesOrIds, async (each) => {
    const { id, name } = await findChannel(call, each);
    const progress = out.progress(`sending a test to ${sanitiseLine(name)}`);
    const answer = await call(testChannel, { params: { id } }).finally(() => progress.end());
    tested.push({ id, ...answer });
    out.print(`${sanitiseLine(name)} accepted the test with status ${answer.status}.`);
  });
  if (out.json) out.data(tested);
  return exit;
}
