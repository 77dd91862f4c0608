import { Columns3 } from 'lucide-react';
import { IconButton } from '../button.tsx';
import { Menu, MenuCheck, MenuHeading, MenuItem, MenuLine } from '../dialog/menu.tsx';
import type { Column } from './column.ts';
import type { ColumnPreference } from './column-preference.ts';

/** A menu that shows and hides columns. The first column identifies the row and cannot be hidden. */
export function ColumnsMenu<Row>({
  columns,
  preference,
  onChange,
}: {
  readonly columns: readonly Column<Row>[];
  readonly preference: ColumnPreference;
  readonly onChange: (next: ColumnPreference) => void;
}) {
  const { hidden, widths } = preference;
  return (
    <Menu trigger={<IconButton look="plain" label="Columns" icon={<Columns3 className="size-4" />} />}>
      <MenuHeading>Columns</MenuHeading>
      {columns.slice(1).map(({ id, header }) => (
        <MenuCheck
          key={id}
          checked={!hidden.includes(id)}
          onChange={(shown) =>
            onChange({ widths, hidden: shown ? hidden.filter((other) => other !== id) : [...hidden, id] })
          }
        >
          {header}
        </MenuCheck>
      ))}
      <MenuLine />
      <MenuItem disabled={Object.keys(widths).length === 0} onSelect={() => onChange({ hidden, widths: {} })}>
        Reset widths
      </MenuItem>
    </Menu>
  );
}
