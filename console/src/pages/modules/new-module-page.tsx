import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { modulesQuery } from '../../api/modules/modules.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Page } from '../../parts/page.tsx';
import { Line } from '../../parts/text.tsx';
import { useLeaveGuard } from '../use-leave-guard.tsx';
import { useStoredDraft } from '../use-stored-draft.ts';
import { ModuleEditor, useModuleCheck } from './module-editor.tsx';
import { SaveDialog } from './save-dialog.tsx';
import { starters } from './starters.ts';
import { useSaveDialog } from './use-save-dialog.ts';

export function NewModulePage() {
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const check = useModuleCheck(text);
  const { name } = check.outline;
  const modules = useQuery(modulesQuery);
  const taken = name !== null && (modules.data?.some((module) => module.name === name) ?? false);
  const unsaved = text.trim() !== '' && !starters.some(({ content }) => content === text);
  const { guard, allow } = useLeaveGuard(unsaved, 'Your module is not saved.');
  useStoredDraft({ name: 'new module', draft: unsaved ? text : null, isDraft: isText, restore: setText });
  const dialog = useSaveDialog(
    text.trim() === ''
      ? 'Enter a module first, or start from an example.'
      : name === null || name.trim() === ''
        ? 'Set “name:” at the top first.'
        : check.judgement.state === 'faulty'
          ? 'Fix the errors first. Select an error to go to its line.'
          : taken
            ? 'A module with this name exists. Open it to change it, or choose another name.'
            : null,
  );
  return (
    <Page
      title="New module"
      subtitle="Declares the desired state of machines as YAML."
      actions={
        <Button look="primary" onClick={() => dialog.save()}>
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
              onSave={dialog.save}
              check={check}
            />
          </div>
        </div>
        <Starters text={text} disabled={unsaved} onChange={setText} />
      </div>
      {guard}
      <SaveDialog
        open={dialog.isOpen}
        onOpenChange={dialog.onOpenChange}
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
    <section className="order-1 lg:order-2">
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
