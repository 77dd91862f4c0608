import { Ellipsis } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button, IconButton } from '../button.tsx';
import { useIsPhone } from '../table/use-drawn-columns.ts';
import { Menu, MenuItem } from './menu.tsx';

export interface PageAction {
  readonly label: string;
  readonly icon: ReactNode;
  readonly onSelect: () => void;
  readonly disabled?: boolean;
  /** Whether the action is in progress. */
  readonly busy?: boolean;
}

/**
 * The less frequent actions of a page, as buttons next to its title. On a phone, where their labels do not fit there, they
 * are in a menu.
 */
export function MoreActions({ actions }: { readonly actions: readonly PageAction[] }) {
  const isPhone = useIsPhone();
  if (actions.length === 0) return null;
  if (!isPhone)
    return actions.map(({ label, icon, onSelect, disabled = false, busy = false }) => (
      <Button key={label} {...{ icon, disabled, busy }} onClick={onSelect}>
        {label}
      </Button>
    ));
  return (
    <Menu trigger={<IconButton look="plain" label="More" icon={<Ellipsis aria-hidden="true" className="size-4" />} />}>
      {actions.map(({ label, icon, onSelect, disabled = false, busy = false }) => (
        <MenuItem key={label} icon={icon} disabled={disabled || busy} onSelect={onSelect}>
          {label}
        </MenuItem>
      ))}
    </Menu>
  );
}
