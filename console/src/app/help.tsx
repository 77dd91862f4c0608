import { Dialog } from '../parts/dialog/dialog.tsx';
import { Keys } from '../parts/kbd.tsx';
import { destinations } from './navigation.ts';

const general: readonly (readonly [string, string])[] = [
  ['/', 'Search on this page'],
  ['↓', 'Move from the search to the rows'],
  ['Mod K', 'Open the command palette'],
  ['?', 'Show keyboard shortcuts'],
  ['Esc', 'Close the open dialog or menu'],
  ['↑ ↓', 'Move between table rows (or j and k)'],
  ['Enter', 'Open the row'],
  ['Space', 'Select the row'],
  ['Shift F10', 'Open the menu of an agent’s row'],
  ['Ctrl Shift L', 'Leave a terminal and focus its toolbar'],
];

export default function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="Keyboard shortcuts" wide>
      <div className="grid gap-x-10 gap-y-6 sm:grid-cols-2">
        <List title="Everywhere" entries={general} />
        <List title="Go to" entries={destinations.map(({ key, label }) => [`g ${key}`, label] as const)} />
      </div>
    </Dialog>
  );
}

function List({
  title,
  entries,
}: {
  readonly title: string;
  readonly entries: readonly (readonly [string, string])[];
}) {
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
