import { fills, Mark, type Tone } from '../../parts/badge.tsx';
import { classNames } from '../../parts/class-names.ts';
import { countsOf, type Outcome, outcomeOfResult, type RunResult } from './run-groups.ts';

interface Look {
  readonly outcome: Outcome;
  readonly words: readonly [apply: string, plan: string];
  readonly tone: Tone;
  /** The tone in a plan, if it differs. */
  readonly planned?: Tone;
  /** The color of the bar, if it differs from the tone's color. */
  readonly fill?: string;
}

/** Colors and labels for the outcomes, in the order of the bar. */
export const looks: readonly Look[] = [
  { outcome: 'removes', words: ['changed, with removals', 'with removals'], tone: 'good', planned: 'bad' },
  { outcome: 'changed', words: ['changed', 'to change'], tone: 'good', planned: 'warn' },
  { outcome: 'same', words: ['unchanged', 'unchanged'], tone: 'neutral', fill: 'bg-good/45' },
  { outcome: 'failed', words: ['failed', 'planning failed'], tone: 'bad' },
  { outcome: 'cancelled', words: ['canceled', 'canceled'], tone: 'warn' },
  { outcome: 'running', words: ['running', 'running'], tone: 'info' },
  { outcome: 'untried', words: ['skipped', 'skipped'], tone: 'neutral' },
  { outcome: 'waiting', words: ['waiting', 'waiting'], tone: 'neutral', fill: 'bg-line' },
];

const lookOf = (outcome: Outcome) => looks.find((look) => look.outcome === outcome);

export const wordOf = (outcome: Outcome, kind: 'apply' | 'plan'): string =>
  lookOf(outcome)?.words[kind === 'plan' ? 1 : 0] ?? outcome;

export function toneOf(outcome: Outcome, kind: 'apply' | 'plan'): Tone {
  const look = lookOf(outcome);
  return (kind === 'plan' ? look?.planned : undefined) ?? look?.tone ?? 'neutral';
}

const fillOf = (outcome: Outcome, kind: 'apply' | 'plan'): string =>
  lookOf(outcome)?.fill ?? fills[toneOf(outcome, kind)];

/** Shows a run's agents as a bar by outcome. */
export function OutcomeBar({
  results,
  kind,
  className,
}: {
  readonly results: readonly RunResult[];
  readonly kind: 'apply' | 'plan';
  readonly className: string;
}) {
  const counts = countsOf(results);
  const total = Math.max(1, results.length);
  return (
    <div className={classNames('flex gap-px overflow-hidden rounded-full bg-raised', className)} aria-hidden="true">
      {looks.map(
        ({ outcome }) =>
          counts[outcome] > 0 && (
            <div
              key={outcome}
              className={classNames(
                fillOf(outcome, kind),
                'transition-[width] duration-300',
                outcome === 'running' && 'animate-pulse',
              )}
              style={{ width: `${(counts[outcome] / total) * 100}%`, minWidth: 3 }}
            />
          ),
      )}
    </div>
  );
}

/** Maximum number of agents for which to show a cell per agent. */
const maxCells = 1_000;

/** Shows a run's progress: a bar by outcome, a legend, and, until the run ends, a cell per agent. */
export function RunProgress({
  results,
  kind,
  canaries,
  chosen,
  onChoose,
}: {
  readonly results: readonly RunResult[];
  readonly kind: 'apply' | 'plan';
  readonly canaries: ReadonlySet<string>;
  readonly chosen: string;
  readonly onChoose: (outcome: string) => void;
}) {
  const counts = countsOf(results);
  const hasEnded = counts.running + counts.waiting === 0;
  return (
    <div>
      <OutcomeBar results={results} kind={kind} className="h-2.5" />
      <div role="group" aria-label="Agents by outcome" className="mt-2.5 flex flex-wrap gap-1">
        {looks.map(
          ({ outcome }) =>
            counts[outcome] > 0 && (
              <button
                key={outcome}
                type="button"
                aria-pressed={chosen === outcome}
                onClick={() => onChoose(chosen === outcome ? '' : outcome)}
                className={classNames(
                  'inline-flex h-7 items-center gap-1.5 rounded-md border px-2 text-xs',
                  chosen === outcome ? 'border-accent bg-accent-soft' : 'hover:bg-hover',
                )}
              >
                <Mark tone={toneOf(outcome, kind)} fill={fillOf(outcome, kind)} />
                <span className="tabular font-medium">{counts[outcome]}</span>
                <span className="text-muted">{wordOf(outcome, kind)}</span>
              </button>
            ),
        )}
      </div>
      {!hasEnded && results.length > 1 && results.length <= maxCells && (
        <div className="mt-3 flex flex-wrap gap-1" aria-hidden="true">
          {results.map((result) => (
            <span
              key={result.node_id}
              title={`${result.name ?? result.node_id}: ${wordOf(outcomeOfResult(result), kind)}`}
              className={classNames(
                'size-2.5 rounded-[3px]',
                fillOf(outcomeOfResult(result), kind),
                outcomeOfResult(result) === 'running' && 'animate-pulse',
                canaries.has(result.node_id) && 'outline-2 outline-accent outline-offset-1',
              )}
            />
          ))}
        </div>
      )}
    </div>
  );
}
