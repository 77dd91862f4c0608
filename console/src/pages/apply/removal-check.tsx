import type { ResourceResult } from '@muster/protocol';
import { useState } from 'react';
import { countedText } from '../../parts/count.ts';
import { Checkbox } from '../../parts/form/field.tsx';
import { Line } from '../../parts/text.tsx';

/** Maximum number of resources to list by name. */
const maxNames = 6;

/**
 * Tracks which removals are confirmed. A confirmation becomes invalid when a removal is added.
 * @param removals a key for each removal, or for each set of removals
 */
export function useConfirmedRemovals(removals: readonly string[]) {
  const [confirmed, setConfirmed] = useState<ReadonlySet<string>>(new Set());
  return {
    isConfirmed: removals.every((removal) => confirmed.has(removal)),
    setConfirmed: (isConfirmed: boolean) => setConfirmed(new Set(isConfirmed ? removals : [])),
  };
}

/** Asks for a separate confirmation of removals, because an apply cannot undo them. */
export function RemovalCheck({
  count,
  agents = 1,
  resources = [],
  checked,
  onChange,
}: {
  /** Number of resources to remove. */
  readonly count: number;
  /** Number of agents on which resources are removed. */
  readonly agents?: number;
  /** The resources to list by name. */
  readonly resources?: readonly ResourceResult[];
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}) {
  if (count === 0) return null;
  return (
    <div className="rounded-md border border-bad/40 bg-bad-soft px-3 py-2">
      <Checkbox
        label={`Remove ${countedText(count, 'resource')}${agents > 1 ? ` from ${agents} agents` : ''}`}
        hint="No assignment declares them anymore. This cannot be undone."
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
      />
      {resources.length > 0 && (
        <ul aria-label="Resources to remove" className="mt-1 pl-6 text-xs">
          {resources.slice(0, maxNames).map(({ module, type, identity }) => (
            <li key={`${module} ${type} ${identity}`} className="flex min-w-0 gap-1.5">
              <span className="flex min-w-0 shrink-0 text-muted">
                <Line text={type} maxLength={64} />
              </span>
              <span className="flex min-w-0 font-mono">
                <Line text={identity} />
              </span>
            </li>
          ))}
          {resources.length > maxNames && <li className="text-muted">and {resources.length - maxNames} more</li>}
        </ul>
      )}
    </div>
  );
}
