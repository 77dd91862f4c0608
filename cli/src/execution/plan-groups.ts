import type { Operation, Run } from '@muster/protocol/http';
import { likenessOf, ownName } from '../../../client/src/plan-likeness.ts';
import { hasChanges, renderOperation, summaryText } from '../text/plan-text.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { counted, type Style } from '../text/style.ts';
import { cutTo } from '../text/width.ts';
import { byName, outcomeName } from './apply-view.ts';

/** Renders the plans of many agents, with equal plans only once. */

export interface AgentPlan {
  readonly name: string;
  readonly operation: Operation;
}

export interface PlanGroup {
  readonly names: readonly string[];
  /** The plan of the group's first agent. */
  readonly operation: Operation;
  /** Whether the plans contain the names of their agents and are otherwise equal. */
  readonly containsName: boolean;
}

/** Groups equal plans, largest group first. Groups of equal size are sorted by their first agent. */
export function groupPlans(plans: readonly AgentPlan[]): PlanGroup[] {
  const groups = new Map<string, { names: string[]; operation: Operation; containsName: boolean }>();
  for (const { name, operation } of plans) {
    const key = likenessOf(operation, name);
    const group = groups.get(key);
    if (group) group.names.push(name);
    else groups.set(key, { names: [name], operation, containsName: key.includes(ownName) });
  }
  return [...groups.values()].toSorted((one, other) => other.names.length - one.names.length);
}

const shownNames = 5;
/** Maximum number of different plans to show in full. */
const maxGroups = 10;

/** Returns `web-1`, or `12 agents: web-1, web-2, … and 7 more`. With -v, returns all names. */
export function namesText(names: readonly string[], { verbose }: Pick<Style, 'verbose'>): string {
  const [only] = names;
  if (only !== undefined && names.length === 1) return sanitiseLine(only);
  const few = verbose || names.length <= shownNames + 1 ? names : names.slice(0, shownNames);
  const more = names.length - few.length;
  return `${names.length} agents: ${sanitiseLine(few.join(', '))}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Returns the totals of a run's plans in one line. */
function totalLine({ results }: Pick<Run, 'results'>, { color }: Style): string {
  let [changing, same, failed, changed, removed] = [0, 0, 0, 0, 0];
  for (const { status, summary } of results) {
    if (status !== 'succeeded' || summary === null) failed++;
    else if (summary.changed + summary.removed > 0) changing++;
    else same++;
    changed += status === 'succeeded' ? (summary?.changed ?? 0) : 0;
    removed += status === 'succeeded' ? (summary?.removed ?? 0) : 0;
  }
  const parts = [
    `${changing} to change`,
    ...(same === 0 ? [] : [`${same} as declared`]),
    ...(failed === 0 ? [] : [color.red(`${failed} could not be planned`)]),
  ];
  const resources =
    changed + removed === 0 ? '' : `; ${counted(changed, 'resource')} to create or change, ${removed} to remove`;
  return `${color.bold(`Plan for ${counted(results.length, 'agent')}:`)} ${parts.join(', ')}${resources}`;
}

/**
 * Renders the plans of a run: each different plan once, unchanged agents, failed agents, and totals.
 * @param operations by node ID; contains only plans that failed or contain changes
 */
export function renderPlans(run: Run, operations: ReadonlyMap<string, Operation>, style: Style): string {
  const { color, width, verbose } = style;
  const plans: AgentPlan[] = [];
  const same: string[] = [];
  const bad: string[] = [];
  for (const result of byName(run.results)) {
    const operation = operations.get(result.node_id);
    const name = outcomeName(result);
    if (operation !== undefined && (hasChanges(operation) || operation.status !== 'succeeded'))
      plans.push({ name, operation });
    else if (result.status === 'succeeded') same.push(name);
    else bad.push(`${color.red('!')} ${color.bold(name)}: ${sanitiseLine(result.error ?? result.status)}`);
  }
  const groups = groupPlans(plans);
  const few = verbose || groups.length <= maxGroups + 1 ? groups : groups.slice(0, maxGroups);
  const blocks = few.map(({ names, operation, containsName }) => {
    const text = renderOperation(operation, namesText(names, style), style);
    if (names.length === 1 || !containsName) return text;
    return `${text}\n${color.dim(`(shown for ${sanitiseLine(names[0] ?? '')}; the others differ only in their name)`)}`;
  });
  const others = groups.slice(few.length);
  if (others.length > 0) {
    const lines = others.map(
      ({ names, operation }) => `${color.bold(namesText(names, style))}: ${summaryText(operation)}`,
    );
    blocks.push([...lines, color.dim('(in full with -v)')].join('\n'));
  }
  if (same.length > 0) blocks.push(color.dim(`Nothing to do on ${namesText(same, style)}`));
  if (bad.length > 0) blocks.push(bad.map((line) => (width === null ? line : cutTo(line, width))).join('\n'));
  return [...blocks, totalLine(run, style)].join('\n\n');
}
