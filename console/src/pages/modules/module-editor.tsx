import { useQuery } from '@tanstack/react-query';
import { CircleAlert, CircleCheck, CircleDashed } from 'lucide-react';
import { lazy, Suspense, useMemo, useRef } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { loadCode } from '../../api/live/load-code.ts';
import { moduleSchemaQuery } from '../../api/modules/module-schema.ts';
import { secretsQuery } from '../../api/secrets.ts';
import { valuesQuery } from '../../api/values.ts';
import type { EditorHandle, EditorMemory } from '../../editor/code-editor.tsx';
import { FaultList } from '../../editor/fault-list.tsx';
import { type Judgement, judge } from '../../editor/faults.ts';
import { type ModuleOutline, outlineOf } from '../../editor/outline.ts';
import type { JsonSchema } from '../../editor/schema.ts';
import type { ChosenAgent, Known } from '../../editor/vocabulary.ts';
import { countedText } from '../../parts/count.ts';
import { Keys } from '../../parts/kbd.tsx';
import { messageOf, Skeleton } from '../../parts/states.tsx';
import { visibleText } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { useSettledText } from './use-settled-text.ts';
import { useVerdict } from './use-verdict.ts';

const CodeEditor = lazy(() => loadCode(() => import('../../editor/code-editor.tsx')));

/** Returns the agent chosen on another tab, with the values of the module's parameters on it; null if there is none. */
function useChosenAgent(module: string | null): ChosenAgent | null {
  const [chosen] = useUrlState<string>('agent', '');
  const { data: agents } = useQuery(agentsQuery);
  const { data: values } = useQuery({ ...valuesQuery(chosen), enabled: chosen !== '' });
  return useMemo(() => {
    const agent = agents?.find(({ node_id }) => node_id === chosen);
    if (agent === undefined) return null;
    const given = values?.filter((value) => value.module === module && value.value !== null) ?? [];
    return {
      name: agent.name ?? agent.node_id,
      node_id: agent.node_id,
      attributes: agent.attributes,
      tags: agent.tags,
      parameters: new Map(given.map(({ parameter, value }) => [parameter, value])),
    };
  }, [agents, values, chosen, module]);
}

/** Names that the completion proposes; null until the schema is loaded. */
function useKnown(module: string | null): Known | null {
  const agent = useChosenAgent(module);
  const { data: schema } = useQuery(moduleSchemaQuery);
  const { data: secrets } = useQuery(secretsQuery);
  const { data: agents } = useQuery(agentsQuery);
  return useMemo(
    () =>
      schema === undefined
        ? null
        : {
            schema: schema as JsonSchema,
            secrets: secrets?.map(({ name }) => name) ?? [],
            tags: [...new Set(agents?.flatMap(({ tags }) => Object.keys(tags)))].sort(),
            agent,
          },
    [schema, secrets, agents, agent],
  );
}

export interface ModuleCheck {
  readonly judgement: Judgement;
  readonly outline: ModuleOutline;
  /** The error of the validation request; null if it succeeded. */
  readonly error: unknown;
}

/** Validates the text: checks the syntax immediately, and reports other errors when the orchestrator responds. */
export function useModuleCheck(text: string, filesOf?: number): ModuleCheck {
  const { verdict, error } = useVerdict(text, filesOf);
  const settled = useSettledText(text);
  const outline = useMemo(() => outlineOf(settled), [settled]);
  const judged = useMemo(() => judge(settled, verdict), [settled, verdict]);
  const judgement = useMemo<Judgement>(
    () => (settled === text ? judged : { ...judged, state: 'checking' }),
    [judged, settled, text],
  );
  return { judgement, outline, error };
}

/** A module editor with a list of errors and keyboard hints. */
export function ModuleEditor({
  label,
  text,
  onChange,
  onSave,
  check: { judgement, outline, error },
  memory,
}: {
  readonly label: string;
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly onSave: () => void;
  readonly check: ModuleCheck;
  /** Preserves the undo history while another tab is open. */
  readonly memory?: EditorMemory;
}) {
  const editor = useRef<EditorHandle>(null);
  const known = useKnown(outline.name);
  const { marks } = judgement;
  return (
    <div className="flex h-full min-h-0 flex-col overflow-hidden rounded-lg border bg-surface focus-within:border-accent">
      <div className="min-h-0 flex-1">
        <Suspense fallback={<EditorSkeleton />}>
          <CodeEditor
            ref={editor}
            label={label}
            value={text}
            onChange={onChange}
            onSave={onSave}
            marks={marks}
            known={known}
            memory={memory}
          />
        </Suspense>
      </div>
      {marks.length > 0 && (
        <section aria-label="Errors" tabIndex={-1} className="max-h-[30%] shrink-0 overflow-y-auto border-t">
          <FaultList marks={marks} onGo={(line, column) => editor.current?.goTo(line, column)} />
        </section>
      )}
      <footer className="flex min-h-9 shrink-0 flex-wrap items-center gap-x-4 gap-y-1 border-t bg-raised px-3 py-1 text-xs">
        <p role="status" className="flex min-w-0 flex-1 items-center">
          <CheckStatus judgement={judgement} error={error} isEmpty={text.trim() === ''} />
        </p>
        {known?.agent != null && (
          <p className="text-muted">
            Point at a name to see its value on <b>{visibleText(known.agent.name)}</b>
          </p>
        )}
        <p className="hidden items-center gap-3 text-muted md:flex">
          <Hint keys="Ctrl Space" action="suggestions" />
          <Hint keys="Mod S" action="save" />
          <Hint keys="Esc Tab" action="exit editor" />
        </p>
      </footer>
    </div>
  );
}

const Hint = ({ keys, action }: { readonly keys: string; readonly action: string }) => (
  <span className="inline-flex items-center gap-1">
    <Keys keys={keys} /> {action}
  </span>
);

function CheckStatus({
  judgement: { marks, state },
  error,
  isEmpty,
}: {
  readonly judgement: Judgement;
  readonly error: unknown;
  readonly isEmpty: boolean;
}) {
  if (isEmpty) return <span className="text-muted">The module is empty.</span>;
  if (state === 'checking')
    return (
      <span className="inline-flex items-center gap-1.5 text-muted">
        <CircleDashed aria-hidden="true" className="size-3.5" />
        {error === null ? 'Checking…' : `Not checked: ${messageOf(error)}`}
      </span>
    );
  const faults = marks.filter(({ severity }) => severity === 'error').length;
  const warnings = marks.length - faults;
  if (state === 'faulty')
    return (
      <span className="inline-flex items-center gap-1.5 text-bad">
        <CircleAlert aria-hidden="true" className="size-3.5" />
        {countedText(faults, 'error')}
        {warnings > 0 && `, ${countedText(warnings, 'warning')}`}
      </span>
    );
  return (
    <span className="inline-flex items-center gap-1.5 text-good">
      <CircleCheck aria-hidden="true" className="size-3.5" />
      Valid{warnings > 0 && <span className="text-warn">, {countedText(warnings, 'warning')}</span>}
    </span>
  );
}

/** Lines of text. @param label null if the skeleton is a part of one that announces itself */
export function EditorSkeleton({ label = 'Loading the editor' }: { readonly label?: string | null }) {
  return (
    <div {...(label === null ? {} : { role: 'status', 'aria-label': label })} className="space-y-2.5 p-4">
      {['w-1/4', 'w-1/3', 'w-1/5', 'w-2/5', 'w-1/2', 'w-1/3', 'w-2/5', 'w-1/4'].map((width, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are interchangeable
        <Skeleton key={line} className={`h-3 ${width}`} />
      ))}
    </div>
  );
}
