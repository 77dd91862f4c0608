import { useNavigate, useSearch } from '@tanstack/react-router';
import { Bookmark } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../../parts/button.tsx';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { Menu, MenuHeading, MenuItem, MenuLine } from '../../parts/dialog/menu.tsx';
import { Input } from '../../parts/form/field.tsx';
import { Line } from '../../parts/text.tsx';
import { isSameSearch, removeView, saveView, useSavedViews } from './saved-views.ts';

export function ViewsMenu() {
  const views = useSavedViews();
  const search = useSearch({ strict: false }) as Record<string, string>;
  const navigate = useNavigate();
  const [naming, setNaming] = useState(false);
  const here = views.find((view) => isSameSearch(view.search, search));
  return (
    <>
      <Menu
        trigger={
          <Button
            icon={<Bookmark aria-hidden="true" className="size-4" />}
            className="max-w-44"
            aria-label={here === undefined ? 'Views' : `View: ${here.name}`}
          >
            {here === undefined ? 'Views' : <Line text={here.name} maxLength={40} />}
          </Button>
        }
      >
        <MenuHeading>Views</MenuHeading>
        {views.length === 0 && (
          <p className="max-w-56 px-2 pb-1 text-muted text-xs">
            Search, filter, and sort, then save the view here. You can also share its URL.
          </p>
        )}
        {views.map((view) => (
          <MenuItem key={view.name} onSelect={() => void navigate({ to: '/agents', search: view.search as never })}>
            <span aria-hidden="true" className="w-4 text-accent">
              {view === here ? '✓' : ''}
            </span>
            <Line text={view.name} maxLength={40} />
          </MenuItem>
        ))}
        <MenuLine />
        <MenuItem disabled={Object.keys(search).length === 0 || here !== undefined} onSelect={() => setNaming(true)}>
          Save this view…
        </MenuItem>
        {here !== undefined && (
          <MenuItem danger onSelect={() => removeView(here.name)}>
            Remove this view
          </MenuItem>
        )}
      </Menu>
      {naming && (
        <NameDialog
          taken={views.map(({ name }) => name)}
          onName={(name) => saveView({ name, search })}
          onClose={() => setNaming(false)}
        />
      )}
    </>
  );
}

function NameDialog({
  taken,
  onName,
  onClose,
}: {
  readonly taken: readonly string[];
  readonly onName: (name: string) => void;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState('');
  const trimmed = name.trim();
  return (
    <FormDialog
      title="Save this view"
      action="Save"
      invalid={trimmed === ''}
      onSubmit={() => {
        onName(trimmed);
        onClose();
      }}
      onClose={onClose}
    >
      <Input
        label="Name"
        placeholder="Offline in Berlin"
        maxLength={60}
        value={name}
        onChange={(event) => setName(event.target.value)}
        hint={taken.includes(trimmed) ? 'Replaces the existing view with this name.' : 'Stored in this browser.'}
      />
    </FormDialog>
  );
}
