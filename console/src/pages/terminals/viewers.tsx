import type { TerminalSession } from '@muster/protocol/http';
import { Eye } from 'lucide-react';
import { buttonClasses } from '../../parts/button.tsx';
import { Menu, MenuHeading } from '../../parts/dialog/menu.tsx';
import { Line, Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';

type Attached = TerminalSession['attached'];

/** Shows the number of operators connected to a terminal session. A menu lists their names. */
export function Viewers({ attached, onOpen }: { readonly attached: Attached; readonly onOpen: () => void }) {
  const summary = `${attached.length} connected`;
  return (
    <Menu
      trigger={
        <button
          type="button"
          aria-label={`${summary}: show names`}
          title={summary}
          className={buttonClasses('quiet', true)}
          onClick={onOpen}
        >
          <Eye aria-hidden="true" className="size-4" />
          <span className="tabular">{attached.length}</span>
        </button>
      }
    >
      <MenuHeading>{attached.length === 0 ? 'No one is connected' : 'Connected'}</MenuHeading>
      <ul>
        {attached.map((viewer, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: one operator may be connected from two tabs
          <li key={index} className="flex items-center justify-between gap-6 px-2 py-1">
            <Text text={viewer.username} maxLength={40} />
            <span className="text-muted text-xs">
              {viewer.mode === 'control' ? 'in control' : 'watching'}, <Time at={viewer.since} />
            </span>
          </li>
        ))}
      </ul>
    </Menu>
  );
}

/** The connected operators in one line, for narrow screens. */
export const ViewersLine = ({ attached }: { readonly attached: Attached }) =>
  attached.length > 0 && (
    <span className="flex min-w-0 items-center gap-1 text-2xs text-muted">
      <Eye role="img" aria-label="Connected:" className="size-3 shrink-0" />
      <span className="truncate">
        <Line text={viewersText(attached)} />
      </span>
    </span>
  );

export const viewersText = (attached: Attached): string => attached.map(({ username }) => username).join(', ');
