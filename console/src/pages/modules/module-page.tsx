import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { Trash2 } from 'lucide-react';
import { useEffect, useMemo, useRef, useState } from 'react';
import { assignmentsQuery } from '../../api/assignments.ts';
import { isNoModule, moduleQuery, modulesQuery, removeModule } from '../../api/modules.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { told } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Line, visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { useLeaving } from '../leaving.tsx';
import { AssignmentLink, OperatorName } from '../links.tsx';
import { Conflict } from './conflict.tsx';
import { type Draft, followed, keptMine, type Stored, standing, takenStored } from './draft.ts';
import { Editing, useJudgement } from './editing.tsx';
import { OrderTab } from './order-tab.tsx';
import { RevisionsTab } from './revisions-tab.tsx';
import { SaveDialog } from './save-dialog.tsx';
import { starters } from './starters.ts';
import { TryTab } from './try-tab.tsx';
import { UsageTab } from './usage-tab.tsx';

const editorHeight = 'h-[max(22rem,calc(100dvh-13.5rem))]';

/** Ctrl-S wherever the focus is, not only in the editor. */
function useSaveKey(save: () => void): void {
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's' || event.shiftKey || event.altKey)
        return;
      // The editor has heard it already.
      if (!event.defaultPrevented && document.querySelector('[role=dialog],[role=alertdialog]') === null)
        latest.current();
      event.preventDefault();
    };
    window.addEventListener('keydown', onKeyDown);
    return () => window.removeEventListener('keydown', onKeyDown);
  }, []);
}

export function ModulePage() {
  const { module: name = '' } = useParams({ strict: false });
  const query = useQuery(moduleQuery(name));
  if (query.data !== undefined)
    return <WrittenModule key={name} latest={query.data} isRemoved={isNoModule(query.error)} />;
  return (
    <Page title={visibleText(name)}>
      {query.isPending ? (
        <SkeletonRows />
      ) : isNoModule(query.error) ? (
        <Empty
          title="There is no module of this name"
          action={
            <Link to="/modules" className={buttonClasses()}>
              All modules
            </Link>
          }
        >
          It may have been removed. What it put on machines stays until the next apply there.
        </Empty>
      ) : (
        <Failure error={query.error} retry={() => void query.refetch()} />
      )}
    </Page>
  );
}

type Tab = 'editor' | 'try' | 'revisions' | 'order' | 'usage';

function WrittenModule({
  latest,
  isRemoved,
}: {
  readonly latest: Stored;
  /** By somebody else, while it was open here: it is as it was last known. */
  readonly isRemoved: boolean;
}) {
  const { name } = latest;
  const navigate = useNavigate();
  const [tab, setTab] = useUrlState<Tab>('tab', 'editor');
  const [kept, setDraft] = useState<Draft>(() => takenStored(latest));
  const draft = followed(kept, latest);
  if (draft !== kept) setDraft(draft);
  const memory = useRef<unknown>(null);
  const stands = standing(draft, latest);
  const unsaved = stands === 'edited' || stands === 'conflict' || isRemoved;

  const { judgement, outline, error } = useJudgement(draft.text);
  const assignments = useQuery(assignmentsQuery);
  const users = useMemo(
    () => assignments.data?.filter(({ modules }) => modules.includes(name)) ?? [],
    [assignments.data, name],
  );

  const [saving, setSaving] = useState<{ then?: () => void } | null>(null);
  const [removing, setRemoving] = useState(false);
  const { guard, allow } = useLeaving(
    stands === 'edited' || stands === 'conflict',
    `What you have written of ${visibleText(name)} is not saved.`,
  );

  const save = (then?: () => void) => {
    if (!unsaved) told('There is nothing to save: it is as it is stored.');
    else if (stands === 'conflict') {
      setTab('editor');
      told('Somebody saved meanwhile: first choose what becomes of the two.');
    } else if (judgement.state === 'faulty') {
      setTab('editor');
      told('Mend the faults first: each of them leads to its line.');
    } else setSaving(then === undefined ? {} : { then });
  };
  useSaveKey(save);

  const onSaved = (stored: Stored) => {
    if (stored.name === name) {
      setDraft(takenStored(stored));
      told(`Saved as revision ${stored.revision}.`);
      saving?.then?.();
    } else {
      allow();
      void navigate({ to: '/modules/$module', params: { module: stored.name } });
    }
  };

  return (
    <Page
      title={visibleText(name)}
      subtitle={
        <span className="flex flex-wrap gap-x-1.5">
          <span>Revision {latest.revision}</span>·
          <span>
            <OperatorName id={latest.uploaded_by} />, <Time at={latest.uploaded_at} />
          </span>
          {unsaved && <span className="font-medium text-warn">· {isRemoved ? 'removed' : 'not saved'}</span>}
        </span>
      }
      actions={
        <>
          {!isRemoved && (
            <Button look="danger" icon={<Trash2 className="size-4" />} onClick={() => setRemoving(true)}>
              Remove…
            </Button>
          )}
          {unsaved && !isRemoved && (
            <Button onClick={() => setDraft(takenStored(latest))} disabled={stands === 'conflict'}>
              Undo all
            </Button>
          )}
          <Button look="primary" onClick={() => save()} disabled={!unsaved}>
            Save…
          </Button>
        </>
      }
    >
      {isRemoved && (
        <div className="mb-3">
          <Callout tone="warn" title="Somebody has removed this module">
            Its text is still here. Save it to have the module back, with what you have written.
          </Callout>
        </div>
      )}
      <Tabs<Tab>
        label="Parts of the module"
        value={tab}
        onChange={setTab}
        tabs={[
          {
            value: 'editor',
            label: 'Editor',
            content: () => (
              <div className="space-y-3">
                {stands === 'conflict' && (
                  <Conflict
                    draft={draft}
                    latest={latest}
                    onKeep={() => setDraft(keptMine(draft, latest))}
                    onTake={() => setDraft(takenStored(latest))}
                  />
                )}
                <div className={editorHeight}>
                  <Editing
                    label={`Text of ${visibleText(name)}`}
                    text={draft.text}
                    onChange={(text) => setDraft((before) => ({ ...before, text }))}
                    onSave={save}
                    judgement={judgement}
                    error={error}
                    memory={memory}
                  />
                </div>
              </div>
            ),
          },
          {
            value: 'try',
            label: 'Try it',
            content: () => <TryTab name={name} unsaved={unsaved} save={save} />,
          },
          {
            value: 'revisions',
            label: 'Revisions',
            content: () => (
              <RevisionsTab
                name={name}
                onRestore={(revision, content) => {
                  setDraft((before) => ({ ...before, text: content }));
                  setTab('editor');
                  told(`The text of revision ${revision} is in the editor: save it to make it the current one.`);
                }}
              />
            ),
          },
          { value: 'order', label: 'Order', content: () => <OrderTab name={name} /> },
          {
            value: 'usage',
            label: users.length === 0 ? 'Used by' : `Used by ${users.length}`,
            content: () => <UsageTab name={name} assignments={users} parameters={outline.parameters} />,
          },
        ]}
      />
      {guard}
      <SaveDialog
        open={saving !== null}
        onOpenChange={(open) => {
          if (!open) setSaving(null);
        }}
        draft={draft}
        name={outline.name ?? name}
        action={saving?.then === undefined ? 'Save' : 'Save and plan'}
        onSaved={onSaved}
      />
      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={`Remove the module ${visibleText(name)}?`}
        action="Remove"
        onConfirm={async () => {
          await removeModule(name);
          allow();
          void navigate({ to: '/modules' });
        }}
      >
        <p>What it put on machines stays until the next apply there, which takes it away.</p>
        {users.length > 0 && (
          <div className="mt-2">
            <Callout tone="warn" title="Assignments name it">
              Take it out of these first, otherwise it is refused:
              <span className="flex flex-wrap gap-x-3">
                {users.map((assignment) => (
                  <AssignmentLink key={assignment.name} name={assignment.name} />
                ))}
              </span>
            </Callout>
          </div>
        )}
      </Confirm>
    </Page>
  );
}

export function NewModulePage() {
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const { judgement, outline, error } = useJudgement(text);
  const { name } = outline;
  const modules = useQuery(modulesQuery);
  const taken = name !== null && (modules.data?.some((module) => module.name === name) ?? false);
  const unsaved = text.trim() !== '' && !starters.some(({ content }) => content === text);
  const [saving, setSaving] = useState(false);
  const { guard, allow } = useLeaving(unsaved, 'What you have written is not saved.');
  const save = () => {
    if (text.trim() === '') told('Write something first, or begin with one of the examples.');
    else if (name === null || name.trim() === '') told('Give it a name first: “name:” at the top.');
    else if (judgement.state === 'faulty') told('Mend the faults first: each of them leads to its line.');
    else if (taken) told('There is a module of this name: open that one to change it, or choose another name.');
    else setSaving(true);
  };
  useSaveKey(save);
  return (
    <Page
      title="New module"
      subtitle="What a machine should be like, as YAML."
      actions={
        <Button look="primary" onClick={save}>
          Save…
        </Button>
      }
    >
      <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_17rem]">
        <div className="order-2 space-y-3 lg:order-1">
          {taken && name !== null && (
            <Callout
              tone="warn"
              title="There is a module of this name"
              action={
                <Link to="/modules/$module" params={{ module: name }} className={buttonClasses()}>
                  Open it
                </Link>
              }
            >
              <Line text={name} /> is stored already: change it there, or give this one another name.
            </Callout>
          )}
          <div className="h-[max(22rem,calc(100dvh-9.5rem))]">
            <Editing
              label="Text of the new module"
              text={text}
              onChange={setText}
              onSave={save}
              judgement={judgement}
              error={error}
            />
          </div>
        </div>
        <section className="order-1 lg:order-2">
          <h2 className="mb-2 font-semibold text-sm">Begin with</h2>
          <ul className="grid grid-cols-2 gap-2 lg:grid-cols-1">
            {starters.map(({ label, says, content }) => (
              <li key={label}>
                <button
                  type="button"
                  aria-pressed={text === content}
                  disabled={unsaved}
                  className="h-full w-full rounded-md border bg-surface px-3 py-2 text-left hover:bg-hover disabled:cursor-not-allowed disabled:opacity-60 aria-pressed:border-accent"
                  onClick={() => setText(content)}
                >
                  <span className="block font-medium text-sm">{label}</span>
                  <span className="block text-muted text-xs max-sm:hidden">{says}</span>
                </button>
              </li>
            ))}
          </ul>
          {unsaved && (
            <p className="mt-2 text-muted text-xs">
              You have written something.{' '}
              <button type="button" className="rounded text-accent hover:underline" onClick={() => setText('')}>
                Empty the editor
              </button>{' '}
              to begin with another.
            </p>
          )}
        </section>
      </div>
      {guard}
      <SaveDialog
        open={saving}
        onOpenChange={setSaving}
        draft={{ base: null, text }}
        name={name ?? ''}
        onSaved={(stored) => {
          allow();
          told(`Saved. Now try it as a plan on an agent.`);
          void navigate({ to: '/modules/$module', params: { module: stored.name }, search: { tab: 'try' } as never });
        }}
      />
    </Page>
  );
}
