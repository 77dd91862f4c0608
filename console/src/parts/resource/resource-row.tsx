import type { OperationOutput } from '@muster/protocol/http';
import {
  ChevronRight,
  CircleHelp,
  CircleSlash,
  CircleX,
  Equal,
  EyeOff,
  Link as LinkIcon,
  type LucideIcon,
  Minus,
  Pencil,
  Play,
  Plus,
  RotateCw,
} from 'lucide-react';
import { useEffect, useRef } from 'react';
import { Badge, type Tone } from '../badge.tsx';
import { IconButton } from '../button.tsx';
import { classNames } from '../class-names.ts';
import { Line, lineText, PathLine, PathText, Text } from '../text.tsx';
import type { Anchor } from './anchor.ts';
import { ChangesTable } from './changes-table.tsx';
import { Diff } from './diff.tsx';
import { Output } from './output.tsx';
import { hasDetail, type KeyedResult, outcomeOf, type ResultKind } from './resource-groups.ts';

const toneText: Record<Tone, string> = {
  good: 'text-good',
  warn: 'text-warn',
  bad: 'text-bad',
  info: 'text-info',
  neutral: 'text-muted',
};

function iconOf({ status, action }: KeyedResult['result']): LucideIcon {
  if (status === 'failed') return CircleX;
  if (status === 'unknown') return CircleHelp;
  if (status === 'skipped') return CircleSlash;
  if (status === 'unchanged') return Equal;
  return { none: Pencil, create: Plus, update: Pencil, remove: Minus, run: Play, reload: RotateCw, restart: RotateCw }[
    action
  ];
}

export type ScriptOutput = OperationOutput['output'][string];

export interface ResourceRowProps {
  readonly each: KeyedResult;
  readonly resultKind: ResultKind;
  /** Descriptions of the resources that triggered this one. */
  readonly triggers: readonly string[];
  readonly output: ScriptOutput | undefined;
  readonly open: boolean;
  readonly onToggle: () => void;
  /** The anchor in the URL fragment if it refers to this resource; otherwise null. */
  readonly anchor: Anchor | null;
  readonly onAnchor: (anchor: Anchor) => void;
}

/** A row with a resource's outcome. Expands to show the details. */
export function ResourceRow(props: ResourceRowProps) {
  const { each, output, open, anchor } = props;
  const opens = hasDetail(each.result) || output !== undefined;
  const row = useRef<HTMLDivElement>(null);
  const isNamed = anchor !== null;
  const namesLine = anchor !== null && anchor.line !== null;
  useEffect(() => {
    if (isNamed && !namesLine) row.current?.scrollIntoView({ block: 'start' });
  }, [isNamed, namesLine]);
  return (
    <div
      ref={row}
      className={classNames(
        'scroll-mt-14 border-b last:border-b-0 [contain-intrinsic-size:auto_37px] [content-visibility:auto]',
        isNamed && 'bg-accent-soft/40 shadow-[inset_2px_0_0_var(--accent)]',
      )}
    >
      <Header {...props} opens={opens} />
      {open && opens && <Details {...props} />}
    </div>
  );
}

function Header({
  each: { key, result },
  resultKind,
  open,
  opens,
  onToggle,
  onAnchor,
}: ResourceRowProps & { readonly opens: boolean }) {
  const { word, tone } = outcomeOf(result, resultKind);
  const Icon = iconOf(result);
  return (
    <div className="group flex min-h-9 items-center gap-2 px-3 py-1 text-sm">
      <button
        type="button"
        disabled={!opens}
        aria-expanded={opens ? open : undefined}
        onClick={onToggle}
        className="flex min-w-0 flex-1 items-center gap-2 rounded text-left disabled:cursor-default"
      >
        <ChevronRight
          aria-hidden="true"
          className={classNames(
            'size-3.5 shrink-0 text-muted transition-transform duration-100',
            open && 'rotate-90',
            !opens && 'invisible',
          )}
        />
        <Icon aria-hidden="true" className={classNames('size-4 shrink-0', toneText[tone])} />
        <span className="flex min-w-0 items-center gap-2 max-sm:flex-col max-sm:items-start max-sm:gap-0">
          <span className="flex max-w-40 shrink-0 text-muted text-xs">
            <Line text={result.type} maxLength={64} />
          </span>
          <span className="flex min-w-0 max-w-full font-mono text-xs">
            {open ? <PathText text={result.identity} maxLength={1_000} /> : <PathLine text={result.identity} />}
          </span>
        </span>
        <span className={classNames('ml-auto shrink-0 text-xs', toneText[tone])}>{word}</span>
      </button>
      {result.corrective && resultKind !== 'drift' && <Badge tone="info">repairs drift</Badge>}
      {result.sensitive && (
        <span className="inline-flex items-center gap-1 text-muted text-xs" title="Secret values are hidden">
          <EyeOff aria-hidden="true" className="size-3.5" />
          <span className="max-sm:sr-only">hidden</span>
        </span>
      )}
      {/* In a plan, this would be the duration of the comparison. */}
      {resultKind !== 'plan' && (
        <span className="tabular w-14 shrink-0 text-right text-muted text-xs max-sm:hidden">
          {durationText(result.duration_ms)}
        </span>
      )}
      <IconButton
        small
        label={`Link to ${lineText(result.type, 64)} ${lineText(result.identity, 80)}`}
        className="max-sm:hidden"
        icon={<LinkIcon className="size-3.5" />}
        onClick={() => onAnchor({ resource: key, part: 'diff', line: null })}
      />
    </div>
  );
}

function Details({ each: { key, result }, resultKind, triggers, output, anchor, onAnchor }: ResourceRowProps) {
  const { tone } = outcomeOf(result, resultKind);
  // The diff already shows the content, so its hashes are omitted.
  const changes = result.changes.filter(({ field }) => field !== 'content' || !result.diff);
  const isChange = result.status === 'changed' || result.status === 'would_change';
  return (
    <div className="space-y-2.5 px-3 pb-3 sm:pl-11">
      {triggers.length > 0 && <Triggers triggers={triggers} />}
      {result.message !== null && (
        <p
          className={classNames(
            'whitespace-pre-wrap rounded-md px-2.5 py-1.5 text-sm',
            tone === 'bad' && !isChange ? 'bg-bad-soft text-bad' : 'bg-raised',
          )}
        >
          <Text text={result.message} maxLength={1_200} />
        </p>
      )}
      {changes.length > 0 && <ChangesTable changes={changes} resultKind={resultKind} />}
      {result.diff !== null && result.diff !== '' && (
        <Diff
          unified={result.diff}
          label={`Changes of ${lineText(result.identity, 200)}`}
          line={anchor?.part === 'diff' ? anchor.line : null}
          onLine={(line) => onAnchor({ resource: key, part: 'diff', line })}
        />
      )}
      {output !== undefined && <ResourceOutput name={key} output={output} anchor={anchor} onAnchor={onAnchor} />}
    </div>
  );
}

const Triggers = ({ triggers }: { readonly triggers: readonly string[] }) => (
  <p className="text-muted text-sm">
    Triggered by{' '}
    {triggers.map((trigger, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
      <span key={index}>
        {index > 0 && ', '}
        <span className="font-mono text-text text-xs">
          <Text text={trigger} />
        </span>
      </span>
    ))}
    .
  </p>
);

export function ResourceOutput({
  name,
  output,
  anchor,
  onAnchor,
}: {
  /** `module/identity`. */
  readonly name: string;
  readonly output: ScriptOutput;
  readonly anchor: Anchor | null;
  readonly onAnchor: (anchor: Anchor) => void;
}) {
  const running = output.running === true;
  const streams = (['stdout', 'stderr'] as const).filter((stream) => output[stream] !== '');
  return (
    <div className="space-y-2">
      {streams.map((part) => (
        <Output
          key={part}
          text={output[part]}
          label={part === 'stdout' ? 'Standard output' : 'Standard error'}
          running={running}
          truncated={output.truncated}
          line={anchor?.part === part ? anchor.line : null}
          onLine={(line) => onAnchor({ resource: name, part, line })}
        />
      ))}
      <p className="text-muted text-xs">
        {running
          ? 'Running.'
          : `${streams.length === 0 ? 'No output. ' : ''}${output.exit_code === null ? 'Exit code unknown.' : `Exit code ${output.exit_code}.`}`}
      </p>
    </div>
  );
}

/** Formats a duration such as `12ms`, `3.4s`, or `2m 5s`. Returns an empty string below 1 ms. */
export function durationText(ms: number): string {
  if (ms < 1) return '';
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms % 1_000 === 0 ? 0 : 1)}s`;
  const seconds = Math.floor(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m ${seconds % 60}s`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}
