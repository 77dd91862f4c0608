import { Columns3 } from 'lucide-react';
import { IconButton } from '../button.tsx';
import { Menu, MenuCheck, MenuHeading, MenuItem, MenuLine } from '../dialog/menu.tsx';
import type { Column } from './column.ts';
import type { ColumnPreference } from './column-preference.ts';
import { useShows } from './use-drawn-columns.ts';

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
  const { hidden, kept, widths } = preference;
  const shows = useShows();
  const others = (ids: readonly string[], id: string) => ids.filter((other) => other !== id);
  return (
    <Menu trigger={<IconButton look="plain" label="Columns" icon={<Columns3 className="size-4" />} />}>
      <MenuHeading>Columns</MenuHeading>
      {columns.slice(1).map((column) => {
        const { id, header } = column;
        const isNarrow = !shows(column);
        return (
          <MenuCheck
            key={id}
            checked={!hidden.includes(id) && (!isNarrow || kept.includes(id))}
            onChange={(shown) =>
              onChange(
                shown
                  ? { widths, hidden: others(hidden, id), kept: isNarrow ? [...others(kept, id), id] : kept }
                  : // A column that is hidden on a narrow screen is still shown on wide ones.
                    { widths, hidden: isNarrow ? hidden : [...hidden, id], kept: others(kept, id) },
              )
            }
          >
            <span className="flex-1">{header}</span>
            {isNarrow && !kept.includes(id) && <span className="pl-4 text-muted text-xs">wider screens only</span>}
          </MenuCheck>
        );
      })}
      <MenuLine />
      <MenuItem disabled={Object.keys(widths).length === 0} onSelect={() => onChange({ hidden, kept, widths: {} })}>
        Reset widths
      </MenuItem>
    </Menu>
  );
}
