import { getOverview, type Overview } from '@muster/protocol/http';
import { reasonWords } from '../../../../client/src/reason-words.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { type Exit, exits } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, type Colors, counted, duration, type Style } from '../../text/style.ts';
import { wrapWords } from '../../text/width.ts';

export const register: Register = (command, act) => {
  command
    .addOption(watchOption())
    .addHelpText('after', '\nExamples:\n  $ muster overview\n  $ muster overview --watch')
    .action(act(overview));
};

async function overview(context: Context): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const found = await call(getOverview, {});
  if (out.json) out.data(found);
  else out.print(overviewText(found, out.style));
  const isOutdated = (found.desired_state.outdated ?? 0) > 0;
  if (found.off.agents > 0 || isOutdated)
    out.note(out.noteColor.dim(`\nTo see the issues: muster out-of-sync${isOutdated ? ' --outdated' : ''}`));
  return exits.done;
}

/** Joins the nonzero counts with their labels. */
const present = (counts: readonly (readonly [number, string])[]): string =>
  counts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(', ');

/** Returns the overview as lines that fit into the terminal. */
export function overviewText(found: Overview, { color, now, width }: Style): string {
  const margin = 10;
  return linesOf(found, color, now)
    .map(([word, text]) => `${word.padEnd(margin)}${text}`)
    .map((line) => (width === null ? line : wrapWords(line, width, ' '.repeat(margin))))
    .join('\n');
}

function linesOf(found: Overview, color: Colors, now: number): [string, string][] {
  const { agents, desired_state, off, operations, runs_running, secrets_expiring, unread_notifications } = found;
  const offline = agents.approved - agents.connected;
  const work = present([
    [runs_running, runs_running === 1 ? 'run' : 'runs'],
    [operations.running, 'operations running'],
    [operations.queued, 'queued'],
  ]);
  const reasons = present(
    (['apply_failed', 'drifted', 'drift_failed', 'unapplied', 'pending_removals'] as const).map(
      (reason) => [off[reason], reasonWords[reason]] as const,
    ),
  );
  return [
    [
      'agents',
      `${agents.approved} approved, ${color.green(`${agents.connected} connected`)}${offline <= 0 ? '' : `, ${color.red(`${offline} offline`)}`}${agents.pending === 0 ? '' : `, ${color.yellow(`${agents.pending} pending`)}`}${agents.rejected === 0 ? '' : `, ${agents.rejected} rejected`}`,
    ],
    [
      'state',
      present([
        [desired_state.in_sync - (desired_state.outdated ?? 0), 'in sync'],
        [desired_state.outdated ?? 0, 'outdated'],
        [desired_state.accepted, 'with accepted drift'],
        [desired_state.out_of_sync, 'out of sync'],
        [desired_state.never_applied, 'never applied'],
      ]) || 'no agents yet',
    ],
    ['issues', off.agents === 0 ? 'none' : color.yellow(`${counted(off.agents, 'agent')}: ${reasons}`)],
    ['work', work || 'none'],
    ...secrets_expiring.map(({ name, expires_at }): [string, string] => {
      const at = Math.floor(Date.parse(expires_at) / 1000);
      const past = at <= now;
      const when = past ? color.red(`expired ${ago(at, now)}`) : `expires in ${duration(at - now)}`;
      return ['secret', `${sanitiseLine(name)} ${when}`];
    }),
    ['unread', unread_notifications === 0 ? 'none' : counted(unread_notifications, 'notification')],
  ];
}
