import { readFile } from 'node:fs/promises';
import { isKeyId } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import {
  type AnswerOf,
  addOperator,
  listOperators,
  type Operator,
  removeOperatorReporting,
  roles,
} from '@muster/protocol/http';
import type { Command } from 'commander';
import { confirmed } from '../../context/confirm.ts';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { eachNamed, eachOf } from '../../execution/each.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { nearest } from '../../text/nearest.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted, timestamp, when } from '../../text/style.ts';
import { parseChoice } from '../../text/values.ts';

const naming = '\nSpecify an operator by username or operator id.\n';

/** Registers the `muster operator` commands that manage operators. */
export function registerPeople(command: Command, act: Act): void {
  command
    .command('list')
    .description('List operators')
    .option('--all', 'Include removed operators')
    .addHelpText('after', '\nExample:\n  $ muster operator list')
    .action(act(list));
  command
    .command('show')
    .description('Show operators, including removed ones')
    .argument('<operators...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster operator show ada`)
    .action(act(show));
  command
    .command('add')
    .description('Add an operator by an Ed25519 public key')
    .argument('<username>', 'Permanent; a name cannot be reused')
    .argument('[key]', 'The public key, 64 hexadecimal characters: muster operator whoami --public-key')
    .option('--from-ssh <file>', 'OpenSSH public key: a file, the line itself, or -')
    .option('--role <role>', `Role: ${roles.join(' or ')}`, 'operator')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster operator add grace d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\n  $ muster operator add grace --from-ssh grace.pub --role admin',
    )
    .action(act(add));
  command
    .command('remove')
    .description('Remove operators: ends their sign-in sessions, terminals, enrollment tokens and console links')
    .argument('<operators...>')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', `${naming}\nExample:\n  $ muster operator remove grace`)
    .action(act(remove));
}

const everybody = (call: Client): Promise<Operator[]> =>
  call(listOperators, { query: { include_removed: 'true' }, all: true });

/** Finds an operator by username or ID. Prefers an active operator to a removed one with the same name. */
function findOperator(nameOrId: string, operators: readonly Operator[]): Operator {
  const matches = ({ username, operator_id }: Operator) =>
    username === nameOrId || (isKeyId(nameOrId.toLowerCase()) && operator_id === nameOrId.toLowerCase());
  const found = operators.find((one) => matches(one) && one.removed_at === null) ?? operators.find(matches);
  if (found !== undefined) return found;
  const near = nearest(
    nameOrId,
    operators.map(({ username }) => username),
  );
  throw new CliError(
    exits.failed,
    'operator_not_found',
    `there is no operator ${JSON.stringify(nameOrId)}`,
    `${near === null ? '' : `Did you mean ${near}? `}List the operators: muster operator list`,
  );
}

async function list(context: Context, options: { all?: boolean }): Promise<undefined> {
  const { out } = context;
  const { style } = out;
  const { call } = await context.connect();
  const operators = await call(listOperators, {
    query: options.all ? { include_removed: 'true' as const } : {},
    all: true,
  });
  if (out.json) return out.data(operators);
  const names = new Map(operators.map(({ operator_id, username }) => [operator_id, username]));
  out.table(
    [
      {
        heading: 'USERNAME',
        text: ({ username }) => username,
        flexible: true,
        paint: (text, { removed_at }, { color }) => (removed_at === null ? color.bold(text) : color.dim(text)),
      },
      { heading: 'ROLE', text: ({ role }) => role },
      {
        heading: 'OPERATOR ID',
        text: ({ operator_id }) => (style.width === null || style.verbose ? operator_id : operator_id.slice(0, 12)),
        extra: true,
      },
      { heading: 'ADDED', text: ({ added_at }) => when(added_at, style) },
      { heading: 'BY', text: ({ added_by }) => names.get(added_by) ?? added_by, flexible: true, extra: true },
      ...(options.all
        ? [
            {
              heading: 'REMOVED',
              text: ({ removed_at }: Operator) => (removed_at === null ? null : when(removed_at, style)),
            },
          ]
        : []),
    ],
    operators,
  );
}

async function show(context: Context, namesOrIds: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const all = await everybody(call);
  const names = new Map(all.map(({ operator_id, username }) => [operator_id, username]));
  const found: Operator[] = [];
  const exit = await eachNamed(context, namesOrIds, async (name) => {
    const one = findOperator(name, all);
    if (found.length > 0) out.print('');
    found.push(one);
    const by = (id: string) => sanitiseLine(names.get(id) ?? id);
    out.print(`${out.style.color.bold(sanitiseLine(one.username))} (${one.role})`);
    out.print(`operator id  ${sanitiseLine(one.operator_id)}`);
    out.print(`added        ${timestamp(one.added_at)} by ${by(one.added_by)}`);
    if (one.removed_at !== null) out.print(`removed      ${timestamp(one.removed_at)} by ${by(one.removed_by ?? '')}`);
  });
  if (out.json) out.data(namesOrIds.length === 1 ? found[0] : found);
  return exit;
}

/** Returns the public key from the command line, in hexadecimal. */
async function keyOf(context: Context, key: string | undefined, fromSsh: string | undefined): Promise<string> {
  if ((key === undefined) === (fromSsh === undefined))
    throw usageError(
      'specify exactly one public key',
      'Specify 64 hexadecimal characters, or an OpenSSH key: --from-ssh id_ed25519.pub',
    );
  if (key !== undefined) {
    if (key.startsWith('ssh-')) throw usageError('this is an OpenSSH key', `Use --from-ssh ${JSON.stringify(key)}`);
    if (!/^[0-9a-f]{64}$/i.test(key))
      throw usageError(
        'a public key is 64 hexadecimal characters',
        'Print it with `muster operator whoami --public-key`. For an OpenSSH key: --from-ssh FILE',
      );
    return key.toLowerCase();
  }
  const typed = fromSsh ?? '';
  const { readPublicLine } = await import('../../keys/ssh-key.ts');
  const text = typed.startsWith('ssh-')
    ? typed
    : typed === '-'
      ? await context.stdin()
      : await readFile(typed, 'utf8').catch((error: NodeJS.ErrnoException) => {
          throw usageError(`cannot read ${typed}: ${error.code ?? error.message}`);
        });
  if (text.includes('PRIVATE KEY'))
    throw usageError(`${typed} is a private key, which must stay secret`, `Specify its public key: ${typed}.pub`);
  const found = text.split('\n').flatMap((line) => readPublicLine(line) ?? []);
  const [only] = found;
  if (only === undefined)
    throw usageError(
      'no Ed25519 public key of OpenSSH found',
      'Its line begins with ssh-ed25519; other types cannot sign in. Create one: ssh-keygen -t ed25519',
    );
  if (found.length > 1) throw usageError(`found ${found.length} Ed25519 keys`, 'Specify a file with only one of them.');
  return only.key.toString('hex');
}

async function add(
  context: Context,
  username: string,
  key: string | undefined,
  options: { fromSsh?: string; role: string },
): Promise<undefined> {
  const { out } = context;
  const role = parseChoice('--role', options.role, roles);
  const public_key = await keyOf(context, key, options.fromSsh);
  const { call, target } = await context.connect();
  const added = await call(addOperator, { body: { public_key, username, role } });
  if (out.json) out.data(added);
  out.print(
    `Added ${out.style.color.bold(sanitiseLine(added.username))} (${added.role}), ${sanitiseLine(added.operator_id)}.`,
  );
  out.note(`The operator signs in with: muster login --url ${target.url}`);
}

async function remove(context: Context, namesOrIds: string[], { yes }: { yes?: boolean }): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const all = await everybody(call);
  // Resolves all names before the confirmation, so that a wrong name fails before anything is removed.
  const operators = namesOrIds.map((name) => findOperator(name, all));
  const names = sanitiseLine(operators.map(({ username }) => username).join(', '));
  await confirmed(context, yes, {
    question: `Remove ${names}? The name and the key cannot be used again.`,
    what: `${names} would be removed, and neither the name nor the key can be used again`,
  });
  const removed: string[] = [];
  const ended: Removed[] = [];
  const exit = await eachOf(
    context,
    operators,
    ({ username }) => username,
    async ({ operator_id, username }) => {
      const answer = await call(removeOperatorReporting, { params: { operator_id } });
      removed.push(operator_id);
      ended.push(answer);
      out.print(`Removed ${sanitiseLine(username)}.${endedText(answer)}`);
      const added = answer.operators_added.map((each) => sanitiseLine(each.username)).join(', ');
      if (added !== '')
        out.note(`${sanitiseLine(username)} had added ${added}, who can still sign in. Remove those who should not.`);
      const left = leftText(answer);
      if (left !== '') out.note(`Review the remaining objects of ${sanitiseLine(username)}:\n${left}`);
    },
  );
  if (out.json) out.data({ removed, ended });
  return exit;
}

function leftText({ left }: Removed): string {
  const kinds = [
    ['modules', left.modules],
    ['assignments', left.assignments],
    ['channels', left.channels.map(({ name }) => name)],
    ['runs', left.runs],
    ['operations', left.operations],
  ] as const;
  return kinds
    .filter(([, names]) => names.length > 0)
    .map(([kind, names]) => `  ${kind}: ${names.map(sanitiseLine).join(', ')}`)
    .join('\n');
}

type Removed = AnswerOf<typeof removeOperatorReporting>;

function endedText({ ended }: Removed): string {
  const parts = [
    [ended.sessions, 'sign-in session'],
    [ended.terminals.length, 'terminal'],
    [ended.web_logins, 'console link', 'console links'],
    [ended.enrolment_tokens.length, 'enrollment token'],
  ] as const;
  const some = parts.flatMap(([count, noun, plural]) => (count === 0 ? [] : [counted(count, noun, plural)]));
  if (some.length === 0) return '';
  const ids = ended.enrolment_tokens.map(({ id }) => id).join(', ');
  return ` This also ended ${some.join(', ')}${ids === '' ? '' : ` (${ids})`}.`;
}
