import type { ReactNode } from 'react';
import type { LinkState } from '../../api/terminals/terminal-link.ts';
import type { TerminalMode } from '../../api/terminals/terminals.ts';
import { Dot, type Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { visibleText } from '../../parts/text.tsx';
import { endText, exitText } from './session-text.ts';

const looks: Record<LinkState['kind'], readonly [Tone, string]> = {
  connecting: ['info', 'Connecting…'],
  open: ['good', 'In control'],
  lost: ['warn', 'Connection lost, reconnecting…'],
  taken_over: ['warn', 'Taken over'],
  exited: ['neutral', 'Ended'],
  ended: ['neutral', 'Ended'],
};

export function LinkDot({ state }: { readonly state: LinkState }) {
  const [tone, text] = looks[state.kind];
  return (
    <Dot tone={tone} live={state.kind === 'connecting' || state.kind === 'lost'}>
      {state.kind === 'open' && state.mode === 'view' ? 'Watching' : text}
    </Dot>
  );
}

/**
 * Explains that another connection took control or that the terminal session was closed, and offers actions. Otherwise
 * renders nothing.
 */
export function LinkNotice({
  state,
  reason,
  onTake,
  onReplay,
}: {
  readonly state: LinkState;
  /** Why the terminal session was closed; null if unknown. */
  readonly reason: string | null;
  readonly onTake: (mode: TerminalMode) => void;
  readonly onReplay: () => void;
}) {
  if (state.kind === 'taken_over')
    return (
      <Notice
        actions={
          <>
            <Button small onClick={() => onTake('view')}>
              Watch
            </Button>
            <Button small look="primary" onClick={() => onTake('control')}>
              Take control back
            </Button>
          </>
        }
      >
        {visibleText(state.message)}
      </Notice>
    );
  if (state.kind !== 'exited' && state.kind !== 'ended') return null;
  return (
    <Notice
      actions={
        <Button small look="primary" onClick={onReplay}>
          Replay
        </Button>
      }
    >
      {state.kind === 'exited'
        ? exitText(state.code, state.signal)
        : visibleText(endText(state.code, state.message, reason))}
    </Notice>
  );
}

const Notice = ({ actions, children }: { readonly actions: ReactNode; readonly children: ReactNode }) => (
  <div role="status" className="flex shrink-0 flex-wrap items-center gap-2 border-t bg-raised px-3 py-2 text-sm">
    <p className="min-w-0 flex-1">{children}</p>
    {actions}
  </div>
);
