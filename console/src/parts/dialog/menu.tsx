import { Ellipsis } from 'lucide-react';
import { DropdownMenu } from 'radix-ui';
import type { ReactNode } from 'react';
import { IconButton } from '../button.tsx';
import { classNames } from '../class-names.ts';

export function Menu({
  trigger,
  align = 'end',
  defaultOpen = false,
  children,
}: {
  readonly trigger: ReactNode;
  /** Whether the menu is open initially. */
  readonly defaultOpen?: boolean;
  readonly align?: 'start' | 'center' | 'end';
  readonly children: ReactNode;
}) {
  return (
    <DropdownMenu.Root defaultOpen={defaultOpen}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={4}
          collisionPadding={8}
          className="z-50 max-h-[70vh] min-w-44 overflow-y-auto rounded-lg border bg-surface p-1 text-sm shadow-float"
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

/**
 * The menu at the end of a table row.
 * @param on name of the row's object, for screen readers
 */
export const RowActions = ({ on, children }: { readonly on: string; readonly children: ReactNode }) => (
  <Menu
    trigger={
      // The negative margins keep the button from making a row taller if its cells may have several lines, and align its
      // icon with the header.
      <IconButton
        small
        className="sm:-my-0.5 sm:-mr-1.5"
        label={`Actions on ${on}`}
        icon={<Ellipsis aria-hidden="true" className="size-4" />}
      />
    }
  >
    {children}
  </Menu>
);

const itemClasses =
  'flex h-8 max-sm:h-11 cursor-default select-none items-center gap-2 rounded-md px-2 outline-none data-[disabled]:opacity-50 data-[highlighted]:bg-hover';

export function MenuItem({
  icon,
  danger = false,
  disabled = false,
  onSelect,
  children,
}: {
  readonly icon?: ReactNode;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  readonly onSelect: () => void;
  readonly children: ReactNode;
}) {
  return (
    <DropdownMenu.Item
      disabled={disabled}
      onSelect={onSelect}
      className={classNames(itemClasses, danger && 'text-bad')}
    >
      {icon}
      {children}
    </DropdownMenu.Item>
  );
}

/** A menu item that can be checked. Checking it leaves the menu open. */
export function MenuCheck({
  checked,
  onChange,
  children,
}: {
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly children: ReactNode;
}) {
  return (
    <DropdownMenu.CheckboxItem
      checked={checked}
      onCheckedChange={onChange}
      onSelect={(event) => event.preventDefault()}
      className={itemClasses}
    >
      <span aria-hidden="true" className="w-4 text-accent">
        {checked ? '✓' : ''}
      </span>
      {children}
    </DropdownMenu.CheckboxItem>
  );
}

export function MenuRadio<T extends string>({
  value,
  options,
  onChange,
}: {
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly label: ReactNode }[];
  readonly onChange: (value: T) => void;
}) {
  return (
    <DropdownMenu.RadioGroup value={value} onValueChange={(next) => onChange(next as T)}>
      {options.map((option) => (
        <DropdownMenu.RadioItem key={option.value} value={option.value} className={itemClasses}>
          <span aria-hidden="true" className="w-4 text-accent">
            {option.value === value ? '✓' : ''}
          </span>
          {option.label}
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  );
}

export const MenuHeading = ({ children }: { readonly children: ReactNode }) => (
  <DropdownMenu.Label className="px-2 pt-1.5 pb-1 font-medium text-muted text-xs">{children}</DropdownMenu.Label>
);

export const MenuLine = () => <DropdownMenu.Separator className="my-1 h-px bg-line" />;
