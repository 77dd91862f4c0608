import type { TerminalSession } from '@muster/protocol/http';
import { BellRing, Maximize2, Minimize2, Search } from 'lucide-react';
import type { Ref } from 'react';
import type { LinkState } from '../../api/terminals/terminal-link.ts';
import { refetchTerminal } from '../../api/terminals/terminals.ts';
import { Button, IconButton } from '../../parts/button.tsx';
import { Keys } from '../../parts/kbd.tsx';
import { LinkDot } from './link-state.tsx';
import { isOver } from './live-screen.ts';
import { ScreenMenu } from './screen-menu.tsx';
import { Viewers } from './viewers.tsx';

/** @param leaveHintId id of the element that explains how to leave the terminal */
export function TerminalToolbar({
  ref,
  session_id,
  attached,
  state,
  rings,
  full,
  leaveHintId,
  onTakeControl,
  onSearch,
  onFull,
  onEnd,
}: {
  readonly ref: Ref<HTMLDivElement>;
  readonly session_id: string;
  readonly attached: TerminalSession['attached'];
  readonly state: LinkState;
  readonly rings: boolean;
  readonly full: boolean;
  readonly leaveHintId: string;
  readonly onTakeControl: () => void;
  readonly onSearch: () => void;
  readonly onFull: (full: boolean) => void;
  readonly onEnd: () => void;
}) {
  const mode = state.kind === 'open' ? state.mode : null;
  return (
    <div ref={ref} role="toolbar" aria-label="Terminal" className="flex h-10 shrink-0 items-center gap-1 border-b px-2">
      <div className="min-w-0 flex-1 truncate px-1 text-sm" aria-live="polite">
        <LinkDot state={state} />
      </div>
      {mode === 'control' && (
        <p id={leaveHintId} className="flex items-center gap-1.5 text-muted text-xs max-md:sr-only">
          <Keys keys="Ctrl Shift L" /> leaves the terminal
        </p>
      )}
      {rings && (
        <span role="status" className="flex items-center gap-1 text-warn text-xs">
          <BellRing aria-hidden="true" className="size-3.5" /> Bell
        </span>
      )}
      {!isOver(state) && <Viewers attached={attached} onOpen={() => refetchTerminal(session_id)} />}
      {mode === 'view' && (
        <Button small onClick={onTakeControl}>
          Take control
        </Button>
      )}
      <IconButton
        small
        label="Search the screen (Ctrl Shift F)"
        icon={<Search className="size-4" />}
        onClick={onSearch}
      />
      <ScreenMenu />
      <IconButton
        small
        label={full ? 'Leave full screen' : 'Full screen'}
        icon={full ? <Minimize2 className="size-4" /> : <Maximize2 className="size-4" />}
        onClick={() => onFull(!full)}
      />
      {mode === 'control' && (
        <Button small look="danger" onClick={onEnd}>
          End
        </Button>
      )}
    </div>
  );
}
