import { Dialog } from '../parts/dialog/dialog.tsx';
import { Keys } from '../parts/kbd.tsx';
import { destinations } from './navigation.ts';

type Shortcuts = readonly (readonly [keys: string, action: string])[];

const everywhere: Shortcuts = [
  ['/', 'Search on this page'],
  ['Mod K', 'Open the command palette'],
  ['?', 'Show keyboard shortcuts'],
  ['Esc', 'Close the open dialog or menu'],
];

const inTables: Shortcuts = [
  ['↓', 'Move from the search to the rows'],
  ['↑ ↓', 'Move between table rows (or j and k)'],
  ['Enter', 'Open the row'],
  ['Space', 'Select the row'],
  ['Shift F10', 'Open the menu of an agent’s row'],
];

const inTerminals: Shortcuts = [['Ctrl Shift L', 'Leave the terminal and focus its toolbar']];

export default function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="Keyboard shortcuts" wide>
      <div className="grid gap-x-10 gap-y-6 sm:grid-cols-2">
        <div className="space-y-6">
          <List title="Everywhere" entries={everywhere} />
          <List title="In tables" entries={inTables} />
          <List title="In terminals" entries={inTerminals} />
        </div>
        <List title="Go to" entries={destinations.map(({ key, label }) => [`g ${key}`, label] as const)} />
      </div>
    </Dialog>
  );
}

function List({ title, entries }: { readonly title: string; readonly entries: Shortcuts }) {
  return (
    <section>
      <h3 className="mb-2 font-semibold text-sm">{title}</h3>
      <dl className="space-y-1.5">
        {entries.map(([keys, action]) => (
          <div key={keys} className="flex items-center justify-between gap-4 text-sm">
            <dt>{action}</dt>
            <dd>
              <Keys keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
