import { getOverview, listReconcile, type OffAgent, type Overview } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import { readProfiles } from '../../context/profile.ts';
import type { Environment } from '../../directories.ts';
import { type Exit, exits } from '../../exit.ts';
import { agentLabel } from '../../text/agent-label.ts';
import { offLine } from '../../text/reconcile-text.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { counted } from '../../text/style.ts';
import { overviewText } from './overview.ts';

/** Output of `muster` without arguments on a terminal. */

/** Maximum number of agents with issues to show. */
const few = 5;

/** Reports whether an orchestrator is known: a profile exists, or a variable specifies one. */
export async function isSetUp(env: Environment): Promise<boolean> {
  if (env.MUSTER_URL || env.MUSTER_PROFILE) return true;
  return Object.keys((await readProfiles(env)).profiles).length > 0;
}

/** Shows the fleet, its issues, and suggested next commands. */
export async function home(context: Context): Promise<Exit> {
  const { out } = context;
  const { color } = out.style;
  const { profile, url } = await context.target();
  const { call } = await context.connect();
  const found = await call(getOverview, {});
  const off = found.off.agents === 0 ? [] : await call(listReconcile, { query: { limit: String(few) } });
  out.print(profile === null ? color.bold(url) : `${color.bold(sanitiseLine(profile))}  ${color.dim(url)}`);
  out.print('');
  out.print(overviewText(found, out.style));
  attention(context, found, off);
  out.print(`\n${color.bold('Commands')}`);
  const next = nextCommands(found);
  const width = Math.max(...next.map(([command]) => command.length));
  for (const [command, effect] of next) out.print(`  ${command.padEnd(width)}  ${color.dim(effect)}`);
  return exits.done;
}

function attention(
  { out }: Context,
  { agents, desired_state: { outdated = 0 }, off, unread_notifications }: Overview,
  shown: readonly OffAgent[],
): void {
  const { color } = out.style;
  const tasks = [
    ...(agents.pending === 0
      ? []
      : [`${counted(agents.pending, 'agent waits', 'agents wait')} for approval: muster agents list --status pending`]),
    ...(outdated === 0
      ? []
      : [`${counted(outdated, 'agent is', 'agents are')} outdated: muster out-of-sync --outdated`]),
    ...(unread_notifications === 0
      ? []
      : [`${counted(unread_notifications, 'unread notification')}: muster notifications list --unread`]),
  ];
  if (shown.length === 0 && tasks.length === 0) return;
  out.print(`\n${color.bold('Needs attention')}`);
  if (shown.length > 0) {
    out.table<OffAgent>(
      [
        { heading: '', text: () => '' },
        { heading: 'AGENT', text: agentLabel, flexible: true, paint: (text) => color.bold(text) },
        { heading: 'ISSUES', text: offLine, flexible: true, wants: 30 },
      ],
      shown,
    );
    const more = off.agents - shown.length;
    if (more > 0) out.print(`  and ${counted(more, 'more agent')}: muster out-of-sync`);
  }
  for (const task of tasks) out.print(`  ${task}`);
}

/** Returns five commands and their effects. If the fleet has no agents, starts with the command that enrolls one. */
function nextCommands({ agents }: Overview): [command: string, effect: string][] {
  const first: [string, string][] =
    agents.approved === 0
      ? [
          ['muster agents enroll', 'print the command that adds a machine'],
          ['muster modules upload FILE', 'store a module'],
        ]
      : [
          ['muster agents', 'list the agents'],
          ['muster out-of-sync', 'list the agents that are out of sync'],
        ];
  return [
    ...first,
    ['muster plan AGENT', 'show what an apply would do'],
    ['muster apply AGENT', 'show the plan, ask for confirmation, and apply it'],
    ['muster --help', 'list all commands'],
  ];
}
