import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { Trash2 } from 'lucide-react';
import { useEffect, useMemo, useRef, useState } from 'react';
import { assignmentsQuery } from '../../api/assignments.ts';
import { isModuleNotFound, moduleQuery, modulesQuery, removeModule } from '../../api/modules.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Line, visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AssignmentLink, OperatorName } from '../links.tsx';
import { useLeaveGuard } from '../use-leave-guard.tsx';
import { Conflict } from './conflict.tsx';
import { type Draft, draftOf, draftStatus, fastForward, rebase, type Stored } from './draft.ts';
import { ModuleEditor, useModuleCheck } from './module-editor.tsx';
import { OrderTab } from './order-tab.tsx';
import { RevisionsTab } from './revisions-tab.tsx';
import { SaveDialog } from './save-dialog.tsx';
import { starters } from './starters.ts';
import { TryTab } from './try-tab.tsx';
import { UsageTab } from './usage-tab.tsx';

const editorHeight = 'h-[max(22rem,calc(100dvh-13.5rem))]';

/** Saves on Ctrl-S anywhere on the page. */
function useSaveKey(save: () => void): void {
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's' || event.shiftKey || event.altKey)
        return;
      // The editor handles its own Ctrl-S and prevents the default.
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
    return <ModuleDetails key={name} latest={query.data} isRemoved={isModuleNotFound(query.error)} />;
  return (
    <Page title={visibleText(name)}>
      {query.isPending ? (
        <SkeletonRows />
      ) : isModuleNotFound(query.error) ? (
        <Empty
          title="Module not found"
          action={
            <Link to="/modules" className={buttonClasses()}>
              All modules
            </Link>
          }
        >
          It may have been removed. Its resources stay on machines until the next apply there.
        </Empty>
      ) : (
        <Failure error={query.error} retry={() => void query.refetch()} />
      )}
    </Page>
  );
}

type Tab = 'editor' | 'try' | 'revisions' | 'order' | 'usage';

function ModuleDetails({
  latest,
  isRemoved,
}: {
  readonly latest: Stored;
  /** Removed while the page was open; `latest` is the last known revision. */
  readonly isRemoved: boolean;
}) {
  const { name } = latest;
  const navigate = useNavigate();
  const [tab, setTab] = useUrlState<Tab>('tab', 'editor');
  const [stored, setDraft] = useState<Draft>(() => draftOf(latest));
  const draft = fastForward(stored, latest);
  if (draft !== stored) setDraft(draft);
  const memory = useRef<unknown>(null);
  const status = draftStatus(draft, latest);
  const unsaved = status === 'edited' || status === 'conflict' || isRemoved;

  const { judgement, outline, error } = useModuleCheck(draft.text);
  const assignments = useQuery(assignmentsQuery);
  const users = useMemo(
    () => assignments.data?.filter(({ modules }) => modules.includes(name)) ?? [],
    [assignments.data, name],
  );

  const [saving, setSaving] = useState<{ then?: () => void } | null>(null);
  const [removing, setRemoving] = useState(false);
  const { guard, allow } = useLeaveGuard(
    status === 'edited' || status === 'conflict',
    `Your changes to ${visibleText(name)} are not saved.`,
  );

  const save = (then?: () => void) => {
    if (!unsaved) notify('No changes to save.');
    else if (status === 'conflict') {
      setTab('editor');
      notify('Another operator saved a revision. Resolve the conflict first.');
    } else if (judgement.state === 'faulty') {
      setTab('editor');
      notify('Fix the faults first. Select one to go to its line.');
    } else setSaving(then === undefined ? {} : { then });
  };
  useSaveKey(save);

  const onSaved = (stored: Stored) => {
    if (stored.name === name) {
      setDraft(draftOf(stored));
      notify(`Saved as revision ${stored.revision}.`);
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
          {unsaved && <span className="font-medium text-warn">· {isRemoved ? 'removed' : 'unsaved changes'}</span>}
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
            <Button onClick={() => setDraft(draftOf(latest))} disabled={status === 'conflict'}>
              Discard changes
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
          <Callout tone="warn" title="This module was removed">
            Its text is still here. Save it to create the module again with your changes.
          </Callout>
        </div>
      )}
      <Tabs<Tab>
        label="Module"
        value={tab}
        onChange={setTab}
        tabs={[
          {
            value: 'editor',
            label: 'Editor',
            content: () => (
              <div className="space-y-3">
                {status === 'conflict' && (
                  <Conflict
                    draft={draft}
                    latest={latest}
                    onKeep={() => setDraft(rebase(draft, latest))}
                    onTake={() => setDraft(draftOf(latest))}
                  />
                )}
                <div className={editorHeight}>
                  <ModuleEditor
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
                  notify(`Loaded revision ${revision} into the editor. Save it to make it current.`);
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
        <p>Its resources stay on machines until the next apply there removes them.</p>
        {users.length > 0 && (
          <div className="mt-2">
            <Callout tone="warn" title="Assignments use this module">
              Remove it from these first; otherwise the removal is refused:
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
  const { judgement, outline, error } = useModuleCheck(text);
  const { name } = outline;
  const modules = useQuery(modulesQuery);
  const taken = name !== null && (modules.data?.some((module) => module.name === name) ?? false);
  const unsaved = text.trim() !== '' && !starters.some(({ content }) => content === text);
  const [saving, setSaving] = useState(false);
  const { guard, allow } = useLeaveGuard(unsaved, 'Your module is not saved.');
  const save = () => {
    if (text.trim() === '') notify('Enter a module first, or start from an example.');
    else if (name === null || name.trim() === '') notify('Set “name:” at the top first.');
    else if (judgement.state === 'faulty') notify('Fix the faults first. Select one to go to its line.');
    else if (taken) notify('A module with this name exists. Open it to change it, or choose another name.');
    else setSaving(true);
  };
  useSaveKey(save);
  return (
    <Page
      title="New module"
      subtitle="Declares the desired state of machines as YAML."
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
              title="A module with this name exists"
              action={
                <Link to="/modules/$module" params={{ module: name }} className={buttonClasses()}>
                  Open it
                </Link>
              }
            >
              <Line text={name} /> already exists. Change it there, or choose another name.
            </Callout>
          )}
          <div className="h-[max(22rem,calc(100dvh-9.5rem))]">
            <ModuleEditor
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
          <h2 className="mb-2 font-semibold text-sm">Start from an example</h2>
          <ul className="grid grid-cols-2 gap-2 lg:grid-cols-1">
            {starters.map(({ label, description, content }) => (
              <li key={label}>
                <button
                  type="button"
                  aria-pressed={text === content}
                  disabled={unsaved}
                  className="h-full w-full rounded-md border bg-surface px-3 py-2 text-left hover:bg-hover disabled:cursor-not-allowed disabled:opacity-60 aria-pressed:border-accent"
                  onClick={() => setText(content)}
                >
                  <span className="block font-medium text-sm">{label}</span>
                  <span className="block text-muted text-xs max-sm:hidden">{description}</span>
                </button>
              </li>
            ))}
          </ul>
          {unsaved && (
            <p className="mt-2 text-muted text-xs">
              The editor contains changes.{' '}
              <button type="button" className="rounded text-accent hover:underline" onClick={() => setText('')}>
                Clear the editor
              </button>{' '}
              to use another example.
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
          notify('Saved. Now try it as a plan on an agent.');
          void navigate({ to: '/modules/$module', params: { module: stored.name }, search: { tab: 'try' } as never });
        }}
      />
    </Page>
  );
}
