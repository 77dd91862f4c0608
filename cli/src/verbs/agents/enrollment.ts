import { listEnrolmentTokens, revokeEnrolmentToken } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachNamed } from '../../execution/each.ts';
import { findId } from '../../execution/find-id.ts';
import type { Exit } from '../../exit.ts';
import { tagTexts } from '../../text/agent-label.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, duration, listedId } from '../../text/style.ts';
import { enroll, withTokenTerms } from './agents.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List valid enrollment tokens, without their values')
    .option('--all', 'Include tokens that ended in the last 30 days')
    .addHelpText('after', '\nExample:\n  $ muster enrollment-tokens list')
    .action(act(list));
  withTokenTerms(
    command
      .command('create')
      .description('Create a token, and print the command that adds a machine; same as agents enroll'),
  )
    .addHelpText('after', '\nExample:\n  $ muster enrollment-tokens create --uses 20 --tag role=web --expires 2h')
    .action(act(enroll));
  command
    .command('revoke')
    .description('Revoke tokens; agents that enrolled with them stay enrolled')
    .argument('<ids...>', 'Token ids, or the beginning or end of an id if only one matches')
    .addHelpText('after', '\nExample:\n  $ muster enrollment-tokens revoke 01KAGZ3N8V5T1Q6W9X2Y4Z7B8C')
    .action(act(revoke));
};

async function list(context: Context, options: { all?: boolean }): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const tokens = await call(listEnrolmentTokens, {
    query: options.all ? { include_ended: 'true' as const } : {},
    all: true,
  });
  if (out.json) return out.data(tokens);
  if (tokens.length === 0) return out.note('There is no valid enrollment token. Create one: muster agents enroll');
  out.table(
    [
      { heading: 'TOKEN', text: ({ id }) => listedId(id, out.style) },
      { heading: 'NAME', text: ({ name }) => name, flexible: true, extra: true },
      { heading: 'APPROVES', extra: true, text: ({ approve }) => (approve ? 'yes' : 'no') },
      { heading: 'USES LEFT', text: ({ uses_left }) => String(uses_left), align: 'right' },
      {
        heading: 'EXPIRES',
        text: ({ expires_at, revoked_at }) =>
          revoked_at !== null
            ? `revoked ${ago(revoked_at, out.style.now)}`
            : expires_at > out.style.now
              ? `in ${duration(expires_at - out.style.now)}`
              : ago(expires_at, out.style.now),
      },
      {
        heading: 'TAGS',
        text: ({ tags }) => tagTexts(tags).join(' ') || null,
        flexible: true,
      },
    ],
    tokens,
  );
}

async function revoke(context: Context, tokenIds: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const known = async () => (await call(listEnrolmentTokens, { all: true })).map(({ id }) => id);
  const revoked: string[] = [];
  const exit = await eachNamed(context, tokenIds, async (each) => {
    const id = await findId('enrollment token', 'muster enrollment-tokens list', each, known);
    await call(revokeEnrolmentToken, { params: { id } });
    revoked.push(id);
    out.print(`Revoked ${sanitiseLine(id)}.`);
  });
  if (out.json) out.data({ revoked });
  return exit;
}
