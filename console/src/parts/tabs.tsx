import { Tabs as Radix } from 'radix-ui';
import { type ReactNode, useEffect, useRef } from 'react';
import { classNames } from './class-names.ts';
import { countText } from './count.ts';

/** Tabs controlled by the caller, usually with a URL parameter. Renders only the selected tab's content. */
export function Tabs<T extends string>({
  value,
  onChange,
  tabs,
  label,
  fill = false,
}: {
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly label: string;
  /** Whether the content takes the remaining height, for a page that is filled. */
  readonly fill?: boolean;
  readonly tabs: readonly {
    readonly value: T;
    readonly label: ReactNode;
    /** The number of entries, shown after the label; undefined while it is loading. */
    readonly count?: number | undefined;
    readonly content: () => ReactNode;
  }[];
}) {
  const list = useRef<HTMLDivElement>(null);
  // On a phone, the selected tab may be beyond the edge of the list.
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when another tab is selected
  useEffect(() => {
    list.current?.querySelector('[data-state=active]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [value]);
  return (
    // With automatic activation, a tab would be selected again when it regains the focus after a dialog closes.
    <Radix.Root
      activationMode="manual"
      value={value}
      onValueChange={(next) => onChange(next as T)}
      className={classNames(fill && 'flex h-full min-h-0 flex-col')}
    >
      <Radix.List
        ref={list}
        aria-label={label}
        className="mb-4 flex shrink-0 gap-1 overflow-x-auto border-b max-sm:mb-2"
      >
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            // Prevents Radix from focusing the tab by script, which would make the browser show a focus ring. The
            // browser itself focuses the tab instead.
            onMouseDownCapture={(event) => {
              if (event.button !== 0 || event.ctrlKey) return;
              event.stopPropagation();
              onChange(tab.value);
            }}
            className="-mb-px h-9 shrink-0 max-sm:h-11 border-transparent border-b-2 px-3 text-muted text-sm outline-offset-[-3px] hover:text-text data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-text"
          >
            {tab.label}
            {tab.count !== undefined && <span className="tabular font-normal text-muted"> {countText(tab.count)}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content
          key={tab.value}
          value={tab.value}
          className={classNames('min-w-0 outline-offset-4', fill && value === tab.value && 'min-h-0 flex-1')}
        >
          {tab.value === value && tab.content()}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
