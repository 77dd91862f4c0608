import { ArrowDown, ArrowLeft, ArrowRight, ArrowUp } from 'lucide-react';
import type { ReactNode } from 'react';
import { classNames } from '../../parts/class-names.ts';
import type { ExtraKey } from '../../terminal/keys.ts';

const characters = ['|', '~', '/', '-'];

/** Buttons for keys that phones lack. They do not take the focus, so that the on-screen keyboard stays open. */
export function KeyRow({
  ctrl,
  onCtrl,
  onKey,
  onText,
}: {
  /** Whether Ctrl modifies the next key. */
  readonly ctrl: boolean;
  readonly onCtrl: (held: boolean) => void;
  readonly onKey: (key: ExtraKey) => void;
  readonly onText: (text: string) => void;
}) {
  return (
    <div
      role="toolbar"
      aria-label="Keys"
      className="flex shrink-0 gap-1 overflow-x-auto border-t bg-surface p-1.5 sm:hidden pointer-coarse:sm:flex"
    >
      <Key label="Escape" onPress={() => onKey('esc')}>
        Esc
      </Key>
      <Key label="Tab" onPress={() => onKey('tab')}>
        Tab
      </Key>
      <Key label="Ctrl for the next key" pressed={ctrl} onPress={() => onCtrl(!ctrl)}>
        Ctrl
      </Key>
      <Key label="Left" onPress={() => onKey('left')}>
        <ArrowLeft aria-hidden="true" className="size-4" />
      </Key>
      <Key label="Up" onPress={() => onKey('up')}>
        <ArrowUp aria-hidden="true" className="size-4" />
      </Key>
      <Key label="Down" onPress={() => onKey('down')}>
        <ArrowDown aria-hidden="true" className="size-4" />
      </Key>
      <Key label="Right" onPress={() => onKey('right')}>
        <ArrowRight aria-hidden="true" className="size-4" />
      </Key>
      {characters.map((character) => (
        <Key key={character} label={character} onPress={() => onText(character)}>
          {character}
        </Key>
      ))}
    </div>
  );
}

function Key({
  label,
  pressed,
  onPress,
  children,
}: {
  readonly label: string;
  readonly pressed?: boolean;
  readonly onPress: () => void;
  readonly children: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-label={label}
      aria-pressed={pressed}
      onPointerDown={(event) => event.preventDefault()}
      onClick={onPress}
      className={classNames(
        'flex h-9 min-w-9 shrink-0 items-center justify-center rounded-md border px-2 font-mono text-sm',
        pressed ? 'border-accent bg-accent-soft text-accent' : 'bg-raised text-text',
      )}
    >
      {children}
    </button>
  );
}
