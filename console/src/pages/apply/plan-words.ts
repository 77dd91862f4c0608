import type { Summary } from '@muster/protocol';
import { countedText, countText } from '../../parts/count.ts';

/** Words for the changes in a plan, in dialogs that apply it. */

type Changes = Pick<Summary, 'changed' | 'removed'>;

/** Returns text such as `2 to change, 0 to remove, 5 unchanged`. */
export const planText = ({ changed, removed, unchanged }: Changes & Pick<Summary, 'unchanged'>): string =>
  [
    `${countText(changed)} to change`,
    `${countText(removed)} to remove`,
    ...(unchanged > 0 ? [`${countText(unchanged)} unchanged`] : []),
  ].join(', ');

/** Returns the label of the button that applies the changes, for example `Apply 2 changes`. */
export function applyLabel({ changed, removed }: Changes): string {
  if (changed === 0 && removed === 0) return 'Apply anyway';
  if (changed === 0) return `Remove ${countedText(removed, 'resource')}`;
  const change = `Apply ${countedText(changed, 'change')}`;
  return removed === 0 ? change : `${change}, remove ${removed}`;
}
