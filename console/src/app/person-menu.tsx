import { useNavigate } from '@tanstack/react-router';
import { LogOut, Monitor, MonitorSmartphone, Moon, Sun } from 'lucide-react';
import type { ReactNode } from 'react';
import { session } from '../api/client.ts';
import { usePerson } from '../api/sign-in/use-session.ts';
import { Menu, MenuHeading, MenuItem, MenuLine, MenuRadio } from '../parts/dialog/menu.tsx';
import { useTheme } from './theme.ts';
import { setTheme } from './theme-choice.ts';

/** The menu of the signed-in operator. Loaded on the first click on its button, and then opens immediately. */
export default function PersonMenu({ trigger }: { readonly trigger: ReactNode }) {
  const person = usePerson();
  const theme = useTheme();
  const navigate = useNavigate();
  return (
    <Menu defaultOpen trigger={trigger}>
      <MenuHeading>
        {person.username} · {person.role}
      </MenuHeading>
      <MenuLine />
      <MenuHeading>Theme</MenuHeading>
      <MenuRadio
        value={theme}
        onChange={setTheme}
        options={[
          { value: 'system', label: <Option icon={<Monitor className="size-4" />}>System</Option> },
          { value: 'light', label: <Option icon={<Sun className="size-4" />}>Light</Option> },
          { value: 'dark', label: <Option icon={<Moon className="size-4" />}>Dark</Option> },
        ]}
      />
      <MenuLine />
      <MenuItem
        icon={<MonitorSmartphone aria-hidden="true" className="size-4" />}
        onSelect={() => void navigate({ to: '/sessions' })}
      >
        Sessions
      </MenuItem>
      <MenuItem icon={<LogOut aria-hidden="true" className="size-4" />} onSelect={() => void session.leave()}>
        Sign out
      </MenuItem>
    </Menu>
  );
}

const Option = ({ icon, children }: { readonly icon: ReactNode; readonly children: ReactNode }) => (
  <span className="inline-flex items-center gap-2">
    {icon}
    {children}
  </span>
);
