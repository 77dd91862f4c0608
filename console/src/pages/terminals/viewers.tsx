import type { TerminalSession } from '@muster/protocol/http';
import { Eye } from 'lucide-react';
import { buttonClasses } from '../../parts/button.tsx';
import { Menu, MenuHeading } from '../../parts/dialog/menu.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';

type Attached = TerminalSession['attached'];

/** Who is connected to a session now: how many, and on demand who. */
export function Viewers({ attached, onOpen }: { readonly attached: Attached; readonly onOpen: () => void }) {
  const what = attached.length === 1 ? '1 is connected' : `${attached.length} are connected`;
  return (
    <Menu
      trigger={
        <button
          type="button"
          aria-label={`${what}: show who`}
          title={what}
          className={buttonClasses('quiet', true)}
          onClick={onOpen}
        >
          <Eye aria-hidden="true" className="size-4" />
          <span className="tabular">{attached.length}</span>
        </button>
      }
    >
      <MenuHeading>{attached.length === 0 ? 'Nobody is connected' : 'Connected now'}</MenuHeading>
      <ul>
        {attached.map((who, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: one person may be there from two tabs
          <li key={index} className="flex items-center justify-between gap-6 px-2 py-1">
            <Text text={who.username} most={40} />
            <span className="text-muted text-xs">
              {who.mode === 'control' ? 'in control' : 'looks on'}, <Time at={who.since} />
            </span>
          </li>
        ))}
      </ul>
    </Menu>
  );
}

/** The same in a line, where there is no room for a column. */
export const ViewersLine = ({ attached }: { readonly attached: Attached }) =>
  attached.length > 0 && (
    <span className="flex min-w-0 items-center gap-1 text-2xs text-muted">
      <Eye role="img" aria-label="Connected:" className="size-3 shrink-0" />
      <span className="truncate">
        <Line text={viewersText(attached)} />
      </span>
    </span>
  );

/** The same in a cell. */
export const viewersText = (attached: Attached): string => attached.map(({ username }) => username).join(', ');
