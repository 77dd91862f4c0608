import { endSession, endSessions, listSessions } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachNamed } from '../../execution/each.ts';
import { findId } from '../../execution/find-id.ts';
import { type Exit, usageError } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, counted, duration, listedId } from '../../text/style.ts';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List your sign-in sessions: browsers, and programs with a token')
    .addHelpText('after', '\nExample:\n  $ muster sessions list')
    .action(act(list));
  command
    .command('end')
    .description('End sign-in sessions and their connections')
    .argument('[ids...]', 'Session ids, or the beginning or end of an id if only one matches')
    .option('--all', 'End all your sessions, including this one')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster sessions end 01KAGZ3N8V5T1Q6W9X2Y4Z7B8C\n  $ muster sessions end --all',
    )
    .action(act(end));
};

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const sessions = await call(listSessions, { all: true });
  if (out.json) return out.data(sessions);
  const { now } = out.style;
  out.table(
    [
      { heading: 'SESSION', text: ({ id }) => listedId(id, out.style) },
      { heading: 'KIND', text: ({ kind, current }) => `${kind}${current ? ' (this one)' : ''}` },
      { heading: 'SIGNED IN', text: ({ signed_in_at }) => ago(signed_in_at, now) },
      { heading: 'LAST USED', text: ({ last_used_at, signed_in_at }) => ago(last_used_at ?? signed_in_at, now) },
      { heading: 'EXPIRES', text: ({ expires_at }) => `in ${duration(expires_at - now)}`, extra: true },
      { heading: 'ADDRESS', text: ({ address }) => address, extra: true },
      { heading: 'PROGRAM', text: ({ user_agent }) => user_agent, flexible: true },
    ],
    sessions,
  );
}

async function end(context: Context, ids: string[], { all = false }: { all?: boolean }): Promise<Exit | undefined> {
  if (all === ids.length > 0) throw usageError('specify the ids of sessions, or --all');
  const { out } = context;
  const { call, session } = await context.connect();
  if (all) {
    const { ended } = await call(endSessions, {});
    await session.forget();
    if (out.json) out.data({ ended });
    out.print(`Ended ${counted(ended, 'sign-in session')}.`);
    return undefined;
  }
  const known = async () => (await call(listSessions, { all: true })).map(({ id }) => id);
  let ended = 0;
  const exit = await eachNamed(context, ids, async (each) => {
    const id = await findId('sign-in session', 'muster sessions list', each, known);
    await call(endSession, { params: { id } });
    ended++;
    out.print(`Ended ${sanitiseLine(id)}.`);
  });
  if (out.json) out.data({ ended });
  return exit;
}
