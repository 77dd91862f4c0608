import type { Operation, Run } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { ChevronRight } from 'lucide-react';
import { useCallback, useMemo, useRef, useState } from 'react';
import { useLikeness } from '../../api/group-operations.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { anchorText } from '../../parts/resource/anchor.ts';
import { ResultList } from '../../parts/resource/resource-results.tsx';
import { Empty, Problem, Skeleton } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { AgentLink, OperationLink } from '../links.tsx';
import {
  firstToCompare,
  groupResults,
  likenessOf,
  type Outcome,
  ownName,
  type RunGroup,
  type RunResult,
} from './run-groups.ts';
import { wordOf } from './run-progress.tsx';

/** So many operations are compared by themselves; the others when somebody wants to know. */
const firstCompared = 60;
const moreCompared = 500;
/** So many groups stand open at first. */
const openGroups = 3;

const tones: Record<Outcome, Tone> = {
  waiting: 'neutral',
  running: 'info',
  same: 'neutral',
  changed: 'good',
  failed: 'bad',
  untried: 'neutral',
  cancelled: 'warn',
};

/** What a run did or would do: each kind of change once, with how many agents it is on. */
export function RunChanges({ run }: { readonly run: Run }) {
  const { results, kind } = run;
  const [most, setMost] = useState(firstCompared);
  const wanted = useSameList(useMemo(() => firstToCompare(results, most), [results, most]));
  const names = useSameNames(results);
  const likenessHere = useCallback(
    (operation: Operation) => likenessOf(operation, names.get(operation.node_id) ?? null),
    [names],
  );
  const { likeness, examples, left, error, retry } = useLikeness(wanted, likenessHere);
  // The maps grow in place; how many are left says that they did.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  const groups = useMemo(() => groupResults(results, likeness, examples), [results, likeness, examples, left]);
  const uncompared = groups.reduce((sum, group) => sum + group.uncompared.length, 0);
  if (groups.length === 0)
    return (
      <div className="rounded-lg border bg-surface">
        <Empty title="No agent is through yet">What each did shows here, those that did the same together.</Empty>
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
            {uncompared} agents are grouped by their counts only: they were not compared line by line yet.
          </span>
          <Button small onClick={() => setMost(most + moreCompared)}>
            Compare {Math.min(uncompared, moreCompared)} more
          </Button>
          {uncompared > moreCompared && (
            <Button small onClick={() => setMost(results.length)}>
              Compare all
            </Button>
          )}
        </div>
      )}
      {left > 0 && most > firstCompared && (
        <p role="status" className="text-muted text-sm">
          Comparing: {left} left.
        </p>
      )}
      {groups.map((group, index) => (
        <Group key={group.key} group={group} kind={kind} comparing={left > 0} openAtFirst={index < openGroups} />
      ))}
    </div>
  );
}

/** What the agents of a run are called: they keep their names, and are the same from its start to its end. */
function useSameNames(results: readonly RunResult[]): ReadonlyMap<string, string | null> {
  const first = useRef(results);
  return useMemo(() => new Map(first.current.map(({ node_id, name }) => [node_id, name])), []);
}

/** The same list as before while it has the same in it. */
function useSameList(list: readonly string[]): readonly string[] {
  const text = list.join(' ');
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text is the list
  return useMemo(() => list, [text]);
}

const countText = (results: readonly RunResult[]): string =>
  results.length === 1 ? '1 agent' : `${results.length} agents`;

function Group({
  group,
  kind,
  comparing,
  openAtFirst,
}: {
  readonly group: RunGroup;
  readonly kind: Run['kind'];
  readonly comparing: boolean;
  readonly openAtFirst: boolean;
}) {
  const { outcome, results, example, uncompared } = group;
  const shows = outcome === 'changed' || outcome === 'failed' || outcome === 'cancelled';
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
          <Badge tone={kind === 'plan' && outcome === 'changed' ? 'warn' : tones[outcome]}>
            {wordOf(outcome, kind)}
          </Badge>
          {uncompared.length > 0 && !comparing && (
            <span className="text-muted text-xs">{uncompared.length} of them by their counts only</span>
          )}
          <span className="ml-auto text-xs">
            <SummaryLine wrap summary={(example?.summary ?? first?.summary) || null} telling={kind} />
          </span>
        </button>
      </h2>
      {open && (
        <div className="space-y-3 border-t px-4 py-3">
          <Names results={results} />
          {results.length > 1 && example !== null && group.key.includes(ownName) && (
            <p className="text-muted text-xs">
              Shown as on <ExampleName results={results} example={example} />; on each with its own name.
            </p>
          )}
          {error && (
            <p className="rounded-md bg-bad-soft px-2.5 py-1.5 text-bad text-sm">
              <Text text={error} most={600} />
            </p>
          )}
          {example !== null ? (
            <ResultList
              results={example.resources.filter(({ status, message }) => status !== 'unchanged' || message !== null)}
              telling={kind}
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
  return <Line text={results.find(({ node_id }) => node_id === example.node_id)?.name ?? example.node_id} most={64} />;
}

const firstNames = 12;
const mostNames = 500;

function Names({ results }: { readonly results: readonly RunResult[] }) {
  const [all, setAll] = useState(false);
  const shown = results.slice(0, all ? mostNames : firstNames);
  return (
    <ul className="flex max-h-60 flex-wrap items-center gap-1 overflow-y-auto" aria-label="Agents">
      {shown.map(({ node_id, name, operation_id }) => (
        <li key={node_id} className="inline-flex max-w-60 items-center rounded bg-raised px-1.5 text-xs">
          {operation_id === null ? (
            <AgentLink id={node_id} name={name} />
          ) : (
            <OperationLink id={operation_id}>
              <Line text={name ?? node_id} most={64} />
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
      {all && results.length > mostNames && (
        <li className="text-muted text-xs">and {results.length - mostNames} more: see them among the agents.</li>
      )}
    </ul>
  );
}
