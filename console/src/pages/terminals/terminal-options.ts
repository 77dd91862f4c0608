import type { Agent } from '@muster/protocol/http';
import type { PickerOption } from '../../parts/form/picker.tsx';
import { compareNames } from '../../parts/table/compare-names.ts';
import { agentParam, displayName, hasTerminalsDisabled } from '../agents/agent-state.ts';

/** Returns why no terminal can be opened on the agent; null if one can, or if the agent does not report it. */
function obstacleOf(agent: Agent): string | null {
  if (!agent.connected) return 'offline';
  return hasTerminalsDisabled(agent) ? 'terminals disabled' : null;
}

/**
 * Reports whether the agent's attributes state that it offers terminals. Agents with version 0.1 do not report this.
 */
const offersTerminals = ({ attributes }: Agent): boolean =>
  Object.hasOwn(attributes, 'remote_terminal') && attributes.remote_terminal === 'true';

/**
 * Returns the approved agents as options: those that offer terminals first, then those of earlier releases, which do
 * not report it, and then those on which no terminal can be opened. Each part is sorted by name in natural order.
 */
export function terminalOptions(agents: readonly Agent[]): PickerOption[] {
  return agents
    .filter(({ status }) => status === 'approved')
    .map((agent) => {
      const obstacle = obstacleOf(agent);
      const rank = obstacle !== null ? 2 : offersTerminals(agent) ? 0 : 1;
      const detail = obstacle ?? (rank === 1 ? 'earlier release, may have no terminals' : null);
      const option: PickerOption = {
        ...{ value: agentParam(agent), label: displayName(agent).slice(0, 64) },
        ...(detail === null ? {} : { detail }),
        ...(obstacle === null ? {} : { disabled: true }),
      };
      return { rank, option };
    })
    .sort((a, b) => a.rank - b.rank || compareNames(a.option.label, b.option.label))
    .map(({ option }) => option);
}
