import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { modulesQuery, uploadModule } from '../../api/modules/modules.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Line } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { ItemPage } from '../item-page.tsx';
import { useLeaveGuard } from '../use-leave-guard.tsx';
import { useStoredDraft } from '../use-stored-draft.ts';
import { ModuleEditor, useModuleCheck } from './module-editor.tsx';
import { starters } from './starters.ts';
import { TryTab } from './try-tab.tsx';
import { useSave } from './use-save.ts';

type Tab = 'editor' | 'try';

export function NewModulePage() {
  const navigate = useNavigate();
  const [tab, setTab] = useUrlState<Tab>('tab', 'editor');
  const [text, setText] = useState('');
  const memory = useRef<unknown>(null);
  const check = useModuleCheck(text);
  const { name } = check.outline;
  const modules = useQuery(modulesQuery);
  const taken = name !== null && (modules.data?.some((module) => module.name === name) ?? false);
  const unsaved = text.trim() !== '' && !starters.some(({ content }) => content === text);
  const { guard, allow } = useLeaveGuard(unsaved, 'Your module is not saved.');
  useStoredDraft({ name: 'new module', draft: unsaved ? text : null, isDraft: isText, restore: setText });
  const fault =
    text.trim() === ''
      ? 'Enter a module first, or start from an example.'
      : name === null || name.trim() === ''
        ? 'Set “name:” at the top first.'
        : check.judgement.state === 'faulty'
          ? 'Fix the errors first. Select an error to go to its line.'
          : null;
  const store = useMutation({
    mutationFn: () => uploadModule(name ?? '', text),
    onSuccess: (stored) => {
      allow();
      notify('Saved. It has no effect until it is applied.');
      // Preserves the agent and the plan on the tab.
      const search = (before: object) => ({ ...before, tab: 'try' });
      void navigate({ to: '/modules/$module', params: { module: stored.name }, search: search as never });
    },
    onError: notifyError,
  });
  const refusal = taken ? 'A module with this name exists. Open it to change it, or choose another name.' : fault;
  const save = useSave(refusal, () => !store.isPending && store.mutate());
  return (
    <ItemPage
      of="module"
      fill={tab === 'editor'}
      title="New module"
      description="Declares the desired state of machines as YAML."
      actions={
        <Button
          look="primary"
          busy={store.isPending}
          aria-disabled={refusal !== null}
          title={refusal ?? undefined}
          onClick={save}
        >
          Save
        </Button>
      }
      banner={taken && name !== null && <Taken name={name} />}
    >
      <Tabs<Tab>
        fill={tab === 'editor'}
        label="New module"
        value={tab}
        onChange={setTab}
        tabs={[
          {
            value: 'editor',
            label: 'Editor',
            content: () => (
              <div className="flex h-full flex-col gap-4 lg:flex-row">
                <div className="order-2 min-h-60 min-w-0 flex-1 lg:order-1">
                  <ModuleEditor
                    label="Text of the new module"
                    text={text}
                    onChange={setText}
                    onSave={save}
                    check={check}
                    memory={memory}
                  />
                </div>
                <Starters text={text} disabled={unsaved} onChange={setText} />
              </div>
            ),
          },
          {
            value: 'try',
            label: 'Try it',
            content: () => <TryTab name={name} draft={{ content: text }} fault={fault} onSave={save} />,
          },
        ]}
      />
      {guard}
    </ItemPage>
  );
}

function Taken({ name }: { readonly name: string }) {
  return (
    <Callout
      tone="warn"
      title="A module with this name exists"
      action={
        <Link to="/modules/$module" params={{ module: name }} className={buttonClasses()}>
          Open it
        </Link>
      }
    >
      <Line text={name} /> already exists. Edit that module, or choose another name.
    </Callout>
  );
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** Examples to load into the editor. Disabled while the editor contains changes. */
function Starters({
  text,
  disabled,
  onChange,
}: {
  readonly text: string;
  readonly disabled: boolean;
  readonly onChange: (text: string) => void;
}) {
  return (
    <section className="order-1 shrink-0 lg:order-2 lg:w-68 lg:overflow-y-auto">
      <h2 className="mb-2 font-semibold text-sm">Start from an example</h2>
      <ul className="grid grid-cols-2 gap-2 lg:grid-cols-1">
        {starters.map(({ label, description, content }) => (
          <li key={label}>
            <button
              type="button"
              aria-pressed={text === content}
              disabled={disabled}
              className="h-full w-full rounded-md border bg-surface px-3 py-2 text-left hover:bg-hover disabled:cursor-not-allowed disabled:opacity-60 aria-pressed:border-accent"
              onClick={() => onChange(content)}
            >
              <span className="block font-medium text-sm">{label}</span>
              <span className="block text-muted text-xs max-sm:hidden">{description}</span>
            </button>
          </li>
        ))}
      </ul>
      {disabled && (
        <p className="mt-2 text-muted text-xs">
          The editor contains changes.{' '}
          <button type="button" className="rounded text-accent hover:underline" onClick={() => onChange('')}>
            Clear the editor
          </button>{' '}
          to use another example.
        </p>
      )}
    </section>
  );
}
