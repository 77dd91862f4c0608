import type { TerminalSessionDetail } from '@muster/protocol/http';
import { useId, useRef, useState } from 'react';
import type { TerminalMode } from '../../api/terminals/terminals.ts';
import { classNames } from '../../parts/class-names.ts';
import { KeyRow } from './key-row.tsx';
import { LinkNotice } from './link-state.tsx';
import { ScreenSearch } from './screen-search.tsx';
import { EndDialog, QuestionDialogs } from './terminal-dialogs.tsx';
import { TerminalToolbar } from './terminal-toolbar.tsx';
import { useFullScreen } from './use-full-screen.ts';
import { useLiveScreen } from './use-live-screen.ts';

/** An open terminal session, either controlled or watched. */
export function LiveTerminal({
  session_id,
  mode,
  wsUrl,
  session,
  onReplay,
}: {
  readonly session_id: string;
  readonly mode: TerminalMode;
  /** WebSocket URL of a terminal session that was just opened; null attaches to an existing one. */
  readonly wsUrl: string | null;
  readonly session: TerminalSessionDetail | undefined;
  readonly onReplay: () => void;
}) {
  const leaveHintId = useId();
  const toolbar = useRef<HTMLDivElement>(null);
  const focusToolbar = () => toolbar.current?.querySelector<HTMLElement>('button')?.focus();
  const { container, live, state, ctrlHeld, rings, question, setQuestion, searching, setSearching } = useLiveScreen(
    session_id,
    mode,
    wsUrl,
    leaveHintId,
    focusToolbar,
  );
  const [full, setFull] = useFullScreen();
  const [ending, setEnding] = useState(false);
  const take = (newMode: TerminalMode) => live.current?.take(newMode);
  return (
    <div
      className={classNames(
        'flex min-h-0 flex-col overflow-hidden bg-surface',
        full ? 'fixed inset-0 z-30' : 'h-full rounded-lg border',
        rings && 'ring-2 ring-warn',
      )}
    >
      <TerminalToolbar
        ref={toolbar}
        {...{ session_id, state, rings, full, leaveHintId }}
        attached={session?.attached ?? []}
        onTakeControl={() => take('control')}
        onSearch={() => setSearching(!searching)}
        onFull={setFull}
        onEnd={() => setEnding(true)}
      />
      {searching && (
        <ScreenSearch
          onFind={(text, backwards) => live.current?.screen.find(text, backwards) ?? false}
          onClose={() => {
            setSearching(false);
            live.current?.screen.endFind();
            live.current?.screen.focus();
          }}
        />
      )}
      <div className="relative min-h-0 flex-1 bg-surface">
        <div ref={container} className="absolute inset-0 overflow-auto py-1 pl-2" data-terminal />
      </div>
      <LinkNotice state={state} reason={session?.end_reason ?? null} onTake={take} onReplay={onReplay} />
      {state.kind === 'open' && state.mode === 'control' && (
        <KeyRow
          ctrl={ctrlHeld}
          onCtrl={(held) => live.current?.holdCtrl(held)}
          onKey={(key) => live.current?.typeKey(key)}
          onText={(text) => live.current?.type(text)}
        />
      )}
      <QuestionDialogs question={question} screen={() => live.current?.screen} onClose={() => setQuestion(null)} />
      <EndDialog session_id={session_id} open={ending} onOpenChange={setEnding} />
    </div>
  );
}
