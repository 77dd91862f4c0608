import type { Operation, Run } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { ChevronRight } from 'lucide-react';
import { useCallback, useMemo, useRef, useState } from 'react';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { likenessOf, ownName } from '../../../../client/src/plan-likeness.ts';
import { useOperationGroups } from '../../api/group-operations.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { anchorText } from '../../parts/resource/anchor.ts';
import { type ModuleNote, ResultList } from '../../parts/resource/resource-results.tsx';
import { Empty, Problem, Skeleton } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { AgentLink, OperationLink } from '../links.tsx';
import { byAgentName, firstToCompare, groupResults, hasChanges, type RunGroup, type RunResult } from './run-groups.ts';
import { toneOf, wordOf } from './run-progress.tsx';

/** Number of operations to compare initially, and number of additional ones to compare per click. */
const initiallyCompared = 60;
const moreCompared = 500;
/** Number of groups to expand initially. */
const initiallyOpen = 3;

/**
 * Shows the changes in a run, grouped by agents with the same changes.
 * @param results results of the run, whose agents must not change
 * @param folded whether the diffs of all resources are collapsed at first
 */
export function RunChanges({
  results,
  kind,
  folded = false,
  moduleNote,
}: {
  readonly results: readonly RunResult[];
  readonly kind: Run['kind'];
  readonly folded?: boolean;
  readonly moduleNote?: ModuleNote | undefined;
}) {
  const [maxCompared, setMaxCompared] = useState(initiallyCompared);
  const compared = useStableList(useMemo(() => firstToCompare(results, maxCompared), [results, maxCompared]));
  const names = useStableNames(results);
  const likenessHere = useCallback(
    (operation: Operation) => likenessOf(operation, names.get(operation.node_id) ?? null),
    [names],
  );
  const { likeness, examples, left, error, retry } = useOperationGroups(compared, likenessHere);
  // The maps are mutated in place, so a change in `left` indicates that they have changed.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  const groups = useMemo(() => groupResults(results, likeness, examples), [results, likeness, examples, left]);
  const uncompared = groups.reduce((sum, group) => sum + group.uncompared.length, 0);
  if (groups.length === 0)
    return (
      <div className="rounded-lg border bg-surface">
        <Empty title="No agent has finished yet">Changes appear here, grouped by agents with the same changes.</Empty>
      </div>
    );
  return (
    <div className="space-y-4">
      {error !== null && (
        <div className="space-y-2">
          <Problem error={error} />
          <Button small onClick={retry}>
            Try again
          </Button>
        </div>
      )}
      {left === 0 && uncompared > 0 && (
        <div className="flex flex-wrap items-center gap-3 rounded-lg border bg-surface px-4 py-2 text-sm">
          <span className="min-w-64 flex-1">
            {uncompared} agents are grouped by counts only. Their changes have not been compared yet.
          </span>
          <Button small onClick={() => setMaxCompared(maxCompared + moreCompared)}>
            Compare {Math.min(uncompared, moreCompared)} more
          </Button>
          {uncompared > moreCompared && (
            <Button small onClick={() => setMaxCompared(results.length)}>
              Compare all
            </Button>
          )}
        </div>
      )}
      {left > 0 && maxCompared > initiallyCompared && (
        <p role="status" className="text-muted text-sm">
          Comparing: {left} left.
        </p>
      )}
      {groups.map((group, index) => (
        <Group
          key={group.key}
          {...{ group, kind, folded, moduleNote }}
          comparing={left > 0}
          openAtFirst={index < initiallyOpen}
        />
      ))}
    </div>
  );
}

/** Returns agent names by node id. Neither a run's agents nor their names change. */
function useStableNames(results: readonly RunResult[]): ReadonlyMap<string, string | null> {
  const first = useRef(results);
  return useMemo(() => new Map(first.current.map(({ node_id, name }) => [node_id, name])), []);
}

/** Returns the previous list as long as the items are equal. */
function useStableList(list: readonly string[]): readonly string[] {
  const text = list.join(' ');
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text represents the list
  return useMemo(() => list, [text]);
}

const countText = (results: readonly RunResult[]): string =>
  results.length === 1 ? '1 agent' : `${results.length} agents`;

function Group({
  group,
  kind,
  folded,
  moduleNote,
  comparing,
  openAtFirst,
}: {
  readonly group: RunGroup;
  readonly kind: Run['kind'];
  readonly folded: boolean;
  readonly moduleNote: ModuleNote | undefined;
  readonly comparing: boolean;
  readonly openAtFirst: boolean;
}) {
  const { outcome, results, example, uncompared } = group;
  const shows = hasChanges(outcome);
  const [toggled, setOpen] = useState<boolean | null>(null);
  const open = toggled ?? (shows && openAtFirst);
  const navigate = useNavigate();
  const [first] = results;
  const error = example === null ? first?.error : example.error;
  return (
    <div className="overflow-hidden rounded-lg border bg-surface">
      <h2>
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="flex min-h-11 w-full flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-left hover:bg-hover"
        >
          <ChevronRight
            aria-hidden="true"
            className={classNames('size-4 text-muted transition-transform duration-100', open && 'rotate-90')}
          />
          <span className="font-semibold text-sm">{countText(results)}</span>
          <Badge tone={toneOf(outcome, kind)}>{wordOf(outcome, kind)}</Badge>
          {uncompared.length > 0 && !comparing && (
            <span className="text-muted text-xs">{uncompared.length} grouped by counts only</span>
          )}
          <span className="ml-auto text-xs">
            <SummaryLine wrap summary={(example?.summary ?? first?.summary) || null} resultKind={kind} />
          </span>
        </button>
      </h2>
      {open && (
        <div className="space-y-3 border-t px-4 py-3">
          <Names results={results} />
          {results.length > 1 && example !== null && group.key.includes(ownName) && (
            <p className="text-muted text-xs">
              Shown: <ExampleName results={results} example={example} />. The changes of other agents contain their own
              names.
            </p>
          )}
          {error && (
            <p className="rounded-md bg-bad-soft px-2.5 py-1.5 text-bad text-sm">
              <Text text={operationErrorText(error)} maxLength={600} />
            </p>
          )}
          {example !== null ? (
            <ResultList
              folded={folded}
              moduleNote={moduleNote}
              results={example.resources.filter(({ status, message }) => status !== 'unchanged' || message !== null)}
              resultKind={kind}
              onAnchor={(anchor) =>
                void navigate({
                  to: '/operations/$operation',
                  params: { operation: example.operation_id },
                  hash: anchorText(anchor),
                })
              }
            />
          ) : (
            shows && comparing && first?.operation_id !== null && <Skeleton className="h-24 w-full rounded-md" />
          )}
        </div>
      )}
    </div>
  );
}

function ExampleName({ results, example }: { readonly results: readonly RunResult[]; readonly example: Operation }) {
  return (
    <Line text={results.find(({ node_id }) => node_id === example.node_id)?.name ?? example.node_id} maxLength={64} />
  );
}

const initialNames = 12;
const maxNames = 500;

function Names({ results }: { readonly results: readonly RunResult[] }) {
  const [all, setAll] = useState(false);
  const sorted = useMemo(() => results.toSorted(byAgentName), [results]);
  const shown = sorted.slice(0, all ? maxNames : initialNames);
  return (
    <ul className="flex max-h-60 flex-wrap items-center gap-1 overflow-y-auto" aria-label="Agents">
      {shown.map(({ node_id, name, operation_id }) => (
        <li key={node_id} className="inline-flex max-w-60 items-center rounded bg-raised px-1.5 text-xs">
          {operation_id === null ? (
            <AgentLink id={node_id} name={name} />
          ) : (
            <OperationLink id={operation_id}>
              <Line text={name ?? node_id} maxLength={64} />
            </OperationLink>
          )}
        </li>
      ))}
      {shown.length < results.length && !all && (
        <li>
          <Button small look="quiet" onClick={() => setAll(true)}>
            and {results.length - shown.length} more
          </Button>
        </li>
      )}
      {all && results.length > maxNames && (
        <li className="text-muted text-xs">and {results.length - maxNames} more. See the agents tab.</li>
      )}
    </ul>
  );
}
