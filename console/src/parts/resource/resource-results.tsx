import type { ResourceResult } from '@muster/protocol';
import type { OperationOutput } from '@muster/protocol/http';
import { ChevronRight, UnfoldVertical } from 'lucide-react';
import { type ReactNode, useMemo, useState } from 'react';
import { Button } from '../button.tsx';
import { classNames } from '../class-names.ts';
import { Input } from '../form/field.tsx';
import { Empty } from '../states.tsx';
import { Line } from '../text.tsx';
import { useUrlState } from '../url-state.ts';
import type { Anchor } from './anchor.ts';
import {
  type FoldedPiece,
  groupsByModule,
  hasChanged,
  hasDetail,
  hasFailed,
  type KeyedResult,
  keyedResults,
  openAtFirst,
  piecesOf,
  type ResultKind,
  resultAt,
  type Show,
  shownResults,
  triggerText,
} from './resource-groups.ts';
import { ResourceOutput, ResourceRow, type ScriptOutput } from './resource-row.tsx';
import { useAnchor } from './use-anchor.ts';

/** Number of rows per module to render initially. */
const firstRows = 200;
/** Minimum number of results for which the search field is shown. */
const searchFrom = 12;

/** Returns a note to show next to the name of a module, or null. */
export type ModuleNote = (module: string) => string | null;

interface ResultListProps {
  readonly results: readonly ResourceResult[];
  readonly resultKind: ResultKind;
  /** Script output by `module/identity`. */
  readonly output?: OperationOutput['output'] | undefined;
  /** Whether more results will follow. */
  readonly running?: boolean;
  /** Shown if there are no results. */
  readonly empty?: ReactNode;
}

/**
 * The results of an apply, a plan, or a drift check, by module and resource. The URL stores the filter and the anchor
 * (`show`, `find`, `#r=…`).
 */
export function ResourceResults({ results, resultKind, output, running = false, empty }: ResultListProps) {
  const [anchor, onAnchor] = useAnchor();
  const [show, setShow] = useUrlState<Show>('show', 'all');
  const [search, setSearch] = useUrlState<string>('find', '');
  return (
    <ResultList
      {...{ results, resultKind, output, running, empty, anchor, onAnchor, show, search }}
      tools={
        <>
          <ShowChoice show={show} onShow={setShow} results={results} resultKind={resultKind} />
          {results.length >= searchFrom && (
            <div className="w-56 max-sm:w-full">
              <Input
                label="Find a resource"
                hideLabel
                placeholder="Find a resource…"
                data-search
                value={search}
                onChange={(event) => setSearch(event.target.value)}
              />
            </div>
          )}
        </>
      }
    />
  );
}

/** Tracks which results are expanded. By default, important results and the one in the URL fragment are expanded. */
function useOpenResults(keyed: readonly KeyedResult[], named: KeyedResult | null, folded: boolean) {
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const openedFirst = useMemo(() => (folded ? new Set<string>() : openAtFirst(keyed)), [keyed, folded]);
  const isOpen = (key: string) => toggled.get(key) ?? (openedFirst.has(key) || key === named?.key);
  const openable = keyed.filter(({ result }) => hasDetail(result));
  const allOpen = openable.length > 0 && openable.every(({ key }) => isOpen(key));
  return {
    isOpen,
    allOpen,
    toggle: (key: string) => setToggled(new Map(toggled).set(key, !isOpen(key))),
    toggleAll: () => setToggled(new Map(openable.map(({ key }) => [key, !allOpen]))),
  };
}

/**
 * Results without filter fields, for pages with several lists.
 * @param onAnchor navigates to a page with only these results
 */
export function ResultList({
  results,
  resultKind,
  output,
  running = false,
  empty,
  anchor = null,
  onAnchor,
  show = 'all',
  search = '',
  folded = false,
  moduleNote,
  tools,
}: ResultListProps & {
  readonly anchor?: Anchor | null;
  readonly onAnchor: (anchor: Anchor) => void;
  readonly show?: Show;
  readonly search?: string;
  /** Whether all results are collapsed at first. */
  readonly folded?: boolean;
  readonly moduleNote?: ModuleNote | undefined;
  readonly tools?: ReactNode;
}) {
  const keyed = useMemo(() => keyedResults(results), [results]);
  const named = anchor === null ? null : resultAt(keyed, anchor.resource);
  const { isOpen, allOpen, toggle, toggleAll } = useOpenResults(keyed, named, folded);
  const shown = useMemo(() => {
    const matching = shownResults(keyed, show, search);
    // Shows the result in the URL fragment even if it does not match the filter.
    return named === null || matching.includes(named)
      ? matching
      : keyed.filter((each) => each === named || matching.includes(each));
  }, [keyed, show, search, named]);
  const groups = useMemo(() => groupsByModule(shown), [shown]);
  // While a script is running, it has output but no result.
  const early = Object.entries(output ?? {}).filter(([key]) => !keyed.some(({ result }) => isOf(key, result)));
  if (results.length === 0 && early.length === 0) return <>{empty}</>;
  return (
    <div className="min-w-0">
      {/* A single resource needs no filters. */}
      {tools !== undefined && (results.length !== 1 || show !== 'all') && (
        <div className="mb-3 flex flex-wrap items-center gap-2">
          {tools}
          <Button
            small
            look="quiet"
            className="ml-auto"
            icon={<UnfoldVertical aria-hidden="true" className="size-3.5" />}
            onClick={toggleAll}
          >
            {allOpen ? 'Collapse all' : 'Expand all'}
          </Button>
        </div>
      )}
      {shown.length === 0 && early.length === 0 && (
        <Empty title={show === 'failed' ? 'Nothing failed' : 'No resource matches'}>
          {show === 'all' ? 'Try another part of its name.' : 'Show all to see the other resources.'}
        </Empty>
      )}
      <div className="space-y-4">
        {early.map(([key, each]) => (
          <EarlyOutput key={key} {...{ name: key, output: each, anchor, onAnchor }} />
        ))}
        {groups.map(({ module, results: ofModule }) => (
          <ModuleSection
            key={module}
            module={module}
            note={moduleNote?.(module) ?? null}
            results={ofModule}
            resultKind={resultKind}
          >
            <Rows
              results={ofModule}
              namedKey={named?.key ?? null}
              row={(each) => (
                <ResourceRow
                  key={each.key}
                  {...{ each, resultKind, onAnchor }}
                  triggers={each.result.triggered_by.map((id) => triggerText(id, each.result, results))}
                  output={outputOf(output, each.result)}
                  open={isOpen(each.key)}
                  onToggle={() => toggle(each.key)}
                  anchor={each === named ? anchor : null}
                />
              )}
            />
          </ModuleSection>
        ))}
      </div>
      {running && <p className="mt-3 text-muted text-sm">More results appear here as resources finish.</p>}
    </div>
  );
}

function EarlyOutput({
  name,
  output,
  anchor,
  onAnchor,
}: {
  readonly name: string;
  readonly output: ScriptOutput;
  readonly anchor: Anchor | null;
  readonly onAnchor: (anchor: Anchor) => void;
}) {
  return (
    <div className="rounded-lg border bg-surface">
      <h3 className="flex min-h-9 items-center border-b px-3 font-mono text-xs">
        <Line text={name} />
      </h3>
      <div className="p-3">
        <ResourceOutput
          name={name}
          output={output}
          anchor={anchor?.resource === name ? anchor : null}
          onAnchor={onAnchor}
        />
      </div>
    </div>
  );
}

const isOf = (key: string, { module, identity }: ResourceResult): boolean => key === `${module}/${identity}`;

const outputOf = (output: OperationOutput['output'] | undefined, { module, identity }: ResourceResult) => {
  const key = `${module}/${identity}`;
  return output !== undefined && Object.hasOwn(output, key) ? output[key] : undefined;
};

function ShowChoice({
  show,
  onShow,
  results,
  resultKind,
}: {
  readonly show: Show;
  readonly onShow: (show: Show) => void;
  readonly results: readonly ResourceResult[];
  readonly resultKind: ResultKind;
}) {
  const failed = results.filter(hasFailed).length;
  const changed = results.filter(hasChanged).length + failed;
  const choices: readonly { value: Show; label: string; count: number }[] = [
    { value: 'all', label: 'All', count: results.length },
    { value: 'changed', label: resultKind === 'drift' ? 'Drifted' : 'Changed or failed', count: changed },
    { value: 'failed', label: 'Failed', count: failed },
  ];
  // All filters would show the same resources.
  if (show === 'all' && changed === results.length && failed === 0) return null;
  return (
    <div role="group" aria-label="Which resources" className="inline-flex rounded-md border bg-surface p-0.5">
      {choices.map(({ value, label, count }) => (
        <button
          key={value}
          type="button"
          aria-pressed={show === value}
          onClick={() => onShow(value)}
          className={classNames(
            'inline-flex h-6.5 items-center gap-1.5 rounded px-2 text-xs',
            show === value ? 'bg-accent-soft font-medium text-accent' : 'text-muted hover:text-text',
          )}
        >
          {label}
          <span className="tabular">{count}</span>
        </button>
      ))}
    </div>
  );
}

function ModuleSection({
  module,
  note,
  results,
  resultKind,
  children,
}: {
  readonly module: string;
  readonly note: string | null;
  readonly results: readonly KeyedResult[];
  readonly resultKind: ResultKind;
  readonly children: ReactNode;
}) {
  const failed = results.filter(({ result }) => hasFailed(result)).length;
  const changed = results.filter(({ result }) => hasChanged(result)).length;
  return (
    <div className="min-w-0 rounded-lg border bg-surface">
      <h3 className="flex min-h-9 items-center gap-2 border-b px-3 font-semibold text-sm">
        <Line text={module} />
        {note !== null && (
          <span className="flex min-w-0 font-normal text-muted text-xs">
            <Line text={note} maxLength={80} />
          </span>
        )}
        <span className="ml-auto flex shrink-0 gap-2 font-normal text-xs">
          {failed > 0 && <span className="text-bad">{failed} failed</span>}
          {changed > 0 && changed < results.length && (
            <span className="text-muted">
              {changed} {resultKind === 'plan' ? 'to change' : 'changed'}
            </span>
          )}
          <span className="text-muted">{results.length === 1 ? '1 resource' : `${results.length} resources`}</span>
        </span>
      </h3>
      {children}
    </div>
  );
}

function Rows({
  results,
  namedKey,
  row,
}: {
  readonly results: readonly KeyedResult[];
  readonly namedKey: string | null;
  readonly row: (each: KeyedResult) => ReactNode;
}) {
  const [limit, setLimit] = useState(firstRows);
  const pieces = useMemo(() => piecesOf(results, namedKey), [results, namedKey]);
  const namedAt =
    namedKey === null ? -1 : pieces.findIndex((piece) => piece.kind === 'one' && piece.each.key === namedKey);
  const drawn = pieces.slice(0, Math.max(limit, namedAt + 1));
  return (
    <div>
      {drawn.map((piece) =>
        piece.kind === 'one' ? row(piece.each) : <Folded key={piece.results[0]?.key} piece={piece} row={row} />,
      )}
      {drawn.length < pieces.length && (
        <div className="border-t p-2 text-center">
          <Button small onClick={() => setLimit(limit + 5 * firstRows)}>
            Show {Math.min(pieces.length - drawn.length, 5 * firstRows)} more
          </Button>
        </div>
      )}
    </div>
  );
}

function Folded({
  piece: { status, results },
  row,
}: {
  readonly piece: FoldedPiece;
  readonly row: (each: KeyedResult) => ReactNode;
}) {
  const [open, setOpen] = useState(false);
  const [limit, setLimit] = useState(firstRows);
  if (results.length === 1) return row(results[0] as KeyedResult);
  return (
    <div className="border-b last:border-b-0">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex h-8 max-sm:h-11 w-full items-center gap-2 bg-raised/50 px-3 text-left text-muted text-xs hover:bg-hover"
      >
        <ChevronRight
          aria-hidden="true"
          className={classNames('size-3.5 transition-transform duration-100', open && 'rotate-90')}
        />
        {results.length} {status}
      </button>
      {open && <div>{results.slice(0, limit).map(row)}</div>}
      {open && limit < results.length && (
        <div className="p-2 text-center">
          <Button small onClick={() => setLimit(limit + 5 * firstRows)}>
            Show {Math.min(results.length - limit, 5 * firstRows)} more
          </Button>
        </div>
      )}
    </div>
  );
}
