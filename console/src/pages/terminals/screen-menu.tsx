import { Settings2 } from 'lucide-react';
import { IconButton } from '../../parts/button.tsx';
import { Menu, MenuCheck, MenuHeading, MenuItem, MenuLine } from '../../parts/dialog/menu.tsx';
import { fontSizes, setTerminalPreferences, useTerminalPreferences } from '../../terminal/preferences.ts';

/** A menu of terminal display settings, stored in this browser. */
export function ScreenMenu() {
  const { fontSize, screenReader } = useTerminalPreferences();
  const toSize = (size: number) =>
    setTerminalPreferences({ fontSize: Math.max(fontSizes.min, Math.min(fontSizes.max, size)) });
  return (
    <Menu trigger={<IconButton small label="Terminal settings" icon={<Settings2 className="size-4" />} />}>
      <MenuHeading>Text size: {fontSize} px</MenuHeading>
      <MenuItem disabled={fontSize >= fontSizes.max} onSelect={() => toSize(fontSize + 1)}>
        Larger
      </MenuItem>
      <MenuItem disabled={fontSize <= fontSizes.min} onSelect={() => toSize(fontSize - 1)}>
        Smaller
      </MenuItem>
      <MenuItem disabled={fontSize === fontSizes.initial} onSelect={() => toSize(fontSizes.initial)}>
        Default
      </MenuItem>
      <MenuLine />
      <MenuCheck checked={screenReader} onChange={(on) => setTerminalPreferences({ screenReader: on })}>
        Screen reader mode
      </MenuCheck>
    </Menu>
  );
}
