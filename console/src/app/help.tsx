import { Dialog } from '../parts/dialog/dialog.tsx';
import { Keys } from '../parts/kbd.tsx';
import { destinations } from './navigation.ts';

const general: readonly (readonly [string, string])[] = [
  ['/', 'Search on this page'],
  ['Ctrl K', 'Search or go to anything'],
  ['?', 'This help'],
  ['Esc', 'Close what is open'],
  ['↑ ↓', 'Walk the rows of a table; j and k too'],
  ['Enter', 'Open the row'],
  ['Space', 'Choose the row'],
  ['Ctrl Shift L', 'Out of a terminal, to its buttons'],
];

/** The keys, all of them. */
export default function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title="Keys" wide>
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
        {entries.map(([keys, what]) => (
          <div key={keys} className="flex items-center justify-between gap-4 text-sm">
            <dt>{what}</dt>
            <dd>
              <Keys keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
