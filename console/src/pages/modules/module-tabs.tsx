import { useRef } from 'react';
import { notify } from '../../parts/dialog/toast.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import type { Stored } from './draft.ts';
import { EditorTab } from './editor-tab.tsx';
import type { ModuleCheck } from './module-editor.tsx';
import { OrderTab } from './order-tab.tsx';
import { RevisionsTab } from './revisions-tab.tsx';
import { TryTab } from './try-tab.tsx';
import { UsageTab } from './usage-tab.tsx';
import { useAssignmentsOf } from './use-assignments-of.ts';
import type { ModuleDraft } from './use-module-draft.ts';

type Tab = 'editor' | 'try' | 'revisions' | 'order' | 'usage';

export const useModuleTab = () => useUrlState<Tab>('tab', 'editor');

export function ModuleTabs({
  latest,
  state,
  check,
  unsaved,
  fault,
  save,
}: {
  readonly latest: Stored;
  readonly state: ModuleDraft;
  readonly check: ModuleCheck;
  readonly unsaved: boolean;
  /** Why the text cannot be saved or planned; null if it can. */
  readonly fault: string | null;
  /** Opens the save dialog. */
  readonly save: () => void;
}) {
  const { name } = latest;
  const { text: content, filesOf } = state.draft;
  const [tab, setTab] = useModuleTab();
  const memory = useRef<unknown>(null);
  const users = useAssignmentsOf(name);
  return (
    <Tabs<Tab>
      fill={tab === 'editor'}
      label="Module"
      value={tab}
      onChange={setTab}
      tabs={[
        {
          value: 'editor',
          label: 'Editor',
          content: () => <EditorTab {...{ latest, state, check, memory }} onSave={save} />,
        },
        {
          value: 'try',
          label: 'Try it',
          content: () => (
            <TryTab name={name} draft={unsaved ? { content, filesOf } : null} fault={fault} onSave={save} />
          ),
        },
        {
          value: 'revisions',
          label: 'Revisions',
          content: () => (
            <RevisionsTab
              name={name}
              onRestore={(old) => {
                state.restore(old);
                setTab('editor');
                notify(`Loaded revision ${old.revision} into the editor. Save it to make it current.`);
              }}
            />
          ),
        },
        { value: 'order', label: 'Order', content: () => <OrderTab name={name} /> },
        {
          value: 'usage',
          label: 'Used by',
          count: users.length,
          content: () => <UsageTab module={latest} assignments={users} parameters={check.outline.parameters} />,
        },
      ]}
    />
  );
}
