import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { isModuleNotFound, moduleQuery } from '../../api/modules/modules.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { TabsSkeleton } from '../../parts/skeletons.tsx';
import { visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { ItemPage, LoadedItem } from '../item-page.tsx';
import { OperatorName } from '../links.tsx';
import { useLeaveGuard } from '../use-leave-guard.tsx';
import type { Stored } from './draft.ts';
import { EditorSkeleton, useModuleCheck } from './module-editor.tsx';
import { ModuleRollout } from './module-rollout.tsx';
import { ModuleTabs, useModuleTab } from './module-tabs.tsx';
import { RemoveModule } from './remove-module.tsx';
import { SaveDialog } from './save-dialog.tsx';
import { useModuleDraft } from './use-module-draft.ts';
import { useSave } from './use-save.ts';

export function ModulePage() {
  const { module: name = '' } = useParams({ strict: false });
  const query = useQuery(moduleQuery(name));
  return (
    <LoadedItem of="module" title={visibleText(name)} query={query} skeleton={<ModuleSkeleton />}>
      {(latest) => <ModuleDetails key={name} latest={latest} isRemoved={isModuleNotFound(query.error)} />}
    </LoadedItem>
  );
}

const ModuleSkeleton = () => (
  <div>
    <TabsSkeleton labels={['Editor', 'Try it', 'Revisions', 'Order', 'Used by']} />
    <div className="rounded-lg border bg-surface">
      <EditorSkeleton label={null} />
    </div>
  </div>
);

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
  const [tab, setTab] = useModuleTab();
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
    <ItemPage
      of="module"
      // The editor is the only part that scrolls. The other tabs scroll with the page.
      fill={tab === 'editor'}
      title={visibleText(name)}
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
      banner={
        isRemoved && (
          <Callout tone="warn" title="This module was removed">
            Its text is still here. Save it to create the module again with your changes.
          </Callout>
        )
      }
    >
      <ModuleTabs {...{ latest, state, check, unsaved, fault, save }} />
      {guard}
      <SaveDialog
        open={isSaving}
        onOpenChange={setSaving}
        draft={draft}
        name={check.outline.name ?? name}
        onSaved={onSaved}
      />
    </ItemPage>
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
