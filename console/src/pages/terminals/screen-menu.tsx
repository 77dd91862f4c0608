import { Settings2 } from 'lucide-react';
import { IconButton } from '../../parts/button.tsx';
import { Menu, MenuCheck, MenuHeading, MenuItem, MenuLine } from '../../parts/dialog/menu.tsx';
import { fontSizes, setTerminalPreferences, useTerminalPreferences } from '../../terminal/preferences.ts';

/** Display settings of terminals, stored in this browser. */
export function ScreenMenu() {
  const { fontSize, screenReader } = useTerminalPreferences();
  const toSize = (size: number) =>
    setTerminalPreferences({ fontSize: Math.max(fontSizes.least, Math.min(fontSizes.most, size)) });
  return (
    <Menu trigger={<IconButton small label="Terminal settings" icon={<Settings2 className="size-4" />} />}>
      <MenuHeading>Text size: {fontSize} px</MenuHeading>
      <MenuItem disabled={fontSize >= fontSizes.most} onSelect={() => toSize(fontSize + 1)}>
        Larger
      </MenuItem>
      <MenuItem disabled={fontSize <= fontSizes.least} onSelect={() => toSize(fontSize - 1)}>
        Smaller
      </MenuItem>
      <MenuItem disabled={fontSize === fontSizes.usual} onSelect={() => toSize(fontSizes.usual)}>
        Default
      </MenuItem>
      <MenuLine />
      <MenuCheck checked={screenReader} onChange={(on) => setTerminalPreferences({ screenReader: on })}>
        Screen reader mode
      </MenuCheck>
    </Menu>
  );
}
