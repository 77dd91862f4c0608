import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { isModuleNotFound, moduleQuery } from '../../api/modules/modules.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { ListLink, OperatorName } from '../links.tsx';
import { useLeaveGuard } from '../use-leave-guard.tsx';
import type { Stored } from './draft.ts';
import { useModuleCheck } from './module-editor.tsx';
import { ModuleRollout } from './module-rollout.tsx';
import { ModuleTabs, useModuleTab } from './module-tabs.tsx';
import { RemoveModule } from './remove-module.tsx';
import { SaveDialog } from './save-dialog.tsx';
import { useModuleDraft } from './use-module-draft.ts';
import { useSave } from './use-save.ts';

export function ModulePage() {
  const { module: name = '' } = useParams({ strict: false });
  const query = useQuery(moduleQuery(name));
  if (query.data !== undefined)
    return <ModuleDetails key={name} latest={query.data} isRemoved={isModuleNotFound(query.error)} />;
  return (
    <Page
      title={visibleText(name)}
      crumbs={[
        <ListLink key="list" to="/modules">
          Modules
        </ListLink>,
      ]}
    >
      {query.isPending ? (
        <Panel flush>
          <SkeletonRows />
        </Panel>
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

function ModuleDetails({
  latest,
  isRemoved,
}: {
  readonly latest: Stored;
  /** Whether the module was removed while the page was open. `latest` is then the last known revision. */
  readonly isRemoved: boolean;
}) {
  const { name } = latest;
  const navigate = useNavigate();
  const [, setTab] = useModuleTab();
  const state = useModuleDraft(latest);
  const { draft, hasConflict, isEdited } = state;
  const unsaved = isEdited || isRemoved;
  const check = useModuleCheck(draft.text, draft.filesOf);
  const { guard, allow } = useLeaveGuard(isEdited, `Your changes to ${visibleText(name)} are not saved.`);
  const fault = hasConflict
    ? 'Another operator saved a revision. Resolve the conflict first.'
    : check.judgement.state === 'faulty'
      ? 'Fix the errors first. Select an error to go to its line.'
      : null;
  const [isSaving, setSaving] = useState(false);
  const save = useSave(unsaved ? null : 'No changes to save.', () => {
    if (fault === null) {
      setSaving(true);
      return;
    }
    setTab('editor');
    notify(fault);
  });

  const onSaved = (stored: Stored) => {
    if (stored.name === name) {
      state.reset(stored);
      notify(`Saved as revision ${stored.revision}`);
    } else {
      allow();
      void navigate({ to: '/modules/$module', params: { module: stored.name } });
    }
  };

  return (
    <Page
      title={visibleText(name)}
      crumbs={[
        <ListLink key="list" to="/modules">
          Modules
        </ListLink>,
      ]}
      subtitle={<Subtitle latest={latest} note={isRemoved ? 'removed' : isEdited ? 'unsaved changes' : null} />}
      actions={
        <>
          {unsaved && !isRemoved && (
            <Button onClick={() => state.reset(latest)} disabled={hasConflict}>
              Discard changes
            </Button>
          )}
          {unsaved && (
            <Button look="primary" onClick={save}>
              Save…
            </Button>
          )}
          {!unsaved && <ModuleRollout module={latest} />}
          <RemoveModule
            module={latest}
            isRemoved={isRemoved}
            onRemoved={() => {
              allow();
              void navigate({ to: '/modules' });
            }}
          />
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
      <ModuleTabs {...{ latest, state, check, unsaved, fault, save }} />
      {guard}
      <SaveDialog
        open={isSaving}
        onOpenChange={setSaving}
        draft={draft}
        name={check.outline.name ?? name}
        onSaved={onSaved}
      />
    </Page>
  );
}

function Subtitle({ latest, note }: { readonly latest: Stored; readonly note: string | null }) {
  return (
    <span className="flex flex-wrap gap-x-1.5">
      <span>Revision {latest.revision}</span>·
      <span>
        <OperatorName id={latest.uploaded_by} />, <Time at={latest.uploaded_at} />
      </span>
      {note !== null && <span className="font-medium text-warn">· {note}</span>}
    </span>
  );
}
