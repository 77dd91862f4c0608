import type { TerminalSessionDetail } from '@muster/protocol/http';
import { ArrowDown, ArrowUp, BellRing, Maximize2, Minimize2, Search, X } from 'lucide-react';
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { type LinkState, TerminalLink } from '../../api/terminal-link.ts';
import {
  attachTerminal,
  closeTerminal,
  isFinal,
  openTerminalSocket,
  refetchTerminal,
  type TerminalMode,
} from '../../api/terminals.ts';
import { Dot, type Tone } from '../../parts/badge.tsx';
import { Button, IconButton } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Input } from '../../parts/form/field.tsx';
import { Keys } from '../../parts/kbd.tsx';
import { cutText, visibleText } from '../../parts/text.tsx';
import { type ExtraKey, extraKey, pasteable, runsAtOnce, withCtrl } from '../../terminal/keys.ts';
import { useTerminalPreferences } from '../../terminal/preferences.ts';
import { Screen } from '../../terminal/screen.ts';
import { markControl } from './control-mark.ts';
import { KeyRow } from './key-row.tsx';
import { ScreenMenu } from './screen-menu.tsx';
import { endText, exitText } from './session-text.ts';
import { Viewers } from './viewers.tsx';

/** Milliseconds to wait after a size change before resizing. */
const settleMs = 80;
/** Lines above the screen. */
const scrollback = 5_000;

/** An open session, in control or watching. */
export function LiveTerminal({
  session_id,
  mode,
  wsUrl,
  session,
  onReplay,
}: {
  readonly session_id: string;
  readonly mode: TerminalMode;
  /** The socket of a session that was just opened; null to attach to an existing one. */
  readonly wsUrl: string | null;
  readonly session: TerminalSessionDetail | undefined;
  readonly onReplay: () => void;
}) {
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  const toolbar = useRef<HTMLDivElement>(null);
  const screen = useRef<Screen | null>(null);
  const link = useRef<TerminalLink | null>(null);
  const ctrlHeld = useRef(false);
  const [state, setState] = useState<LinkState>({ kind: 'connecting' });
  const [ctrl, setCtrl] = useState(false);
  const [rings, setRings] = useState(0);
  const [asked, setAsked] = useState<string | null>(null);
  const [linkAsked, setLinkAsked] = useState<string | null>(null);
  const [searching, setSearching] = useState(false);
  const [full, setFull] = useState(false);
  const [ending, setEnding] = useState(false);
  const { fontSize, screenReader } = useTerminalPreferences();
  const holdCtrl = (held: boolean) => {
    ctrlHeld.current = held;
    setCtrl(held);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: a session has one connection; other changes are applied by the effects below
  useEffect(() => {
    if (place.current === null) return;
    let timer = 0;
    let controls = mode === 'control';
    const fitSoon = () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => {
        const isOpen = own.state.kind === 'open';
        // Watchers keep the size of the controlling terminal.
        const room = (isOpen && controls) || isOver(own.state) ? shown.room() : null;
        if (room === null) return;
        const { cols, rows } = shown.size;
        shown.resize(room.cols, room.rows);
        if (isOpen && (room.cols !== cols || room.rows !== rows)) own.resize(room.cols, room.rows);
      }, settleMs);
    };
    const shown = new Screen(
      place.current,
      { fontSize, screenReader, readOnly: mode === 'view', scrollback },
      {
        typed: (text) => {
          own.type(ctrlHeld.current ? withCtrl(text) : text);
          if (ctrlHeld.current) holdCtrl(false);
        },
        typedBytes: (bytes) => own.typeBytes(bytes),
        pasted: (text) => {
          if (!controls) return;
          if (runsAtOnce(pasteable(text))) setAsked(text);
          else shown.paste(text);
        },
        bell: () => setRings((count) => count + 1),
        link: setLinkAsked,
        left: () => toolbar.current?.querySelector<HTMLElement>('button')?.focus(),
        searchAsked: () => setSearching(true),
        roomChanged: fitSoon,
      },
    );
    const own = new TerminalLink(
      mode,
      {
        attach: (wanted) => attachTerminal(session_id, wanted),
        open: openTerminalSocket,
        isFinal,
        after: (ms, act) => {
          const waits = window.setTimeout(act, ms);
          return () => window.clearTimeout(waits);
        },
      },
      {
        fresh: () => shown.clear(),
        shown: (bytes) => shown.write(bytes, () => own.drained(bytes.length)),
        sized: (cols, rows) => {
          shown.resize(cols, rows);
          fitSoon();
        },
        changed: (next) => {
          setState(next);
          if (next.kind !== 'connecting') refetchTerminal(session_id);
          if (next.kind !== 'open') return;
          controls = next.mode === 'control';
          shown.readOnly = !controls;
          markControl(session_id, controls);
          fitSoon();
        },
      },
    );
    shown.terminal.textarea?.setAttribute('aria-describedby', `${id}-way-out`);
    screen.current = shown;
    link.current = own;
    own.start(wsUrl);
    if (mode === 'control') shown.focus();
    const hurry = () => own.retryNow();
    window.addEventListener('online', hurry);
    document.addEventListener('visibilitychange', hurry);
    return () => {
      window.clearTimeout(timer);
      window.removeEventListener('online', hurry);
      document.removeEventListener('visibilitychange', hurry);
      own.close();
      shown.dispose();
    };
  }, [session_id]);

  useEffect(() => {
    if (screen.current === null) return;
    screen.current.fontSize = fontSize;
    screen.current.screenReader = screenReader;
    const { cols, rows } = screen.current.size;
    const room =
      link.current?.state.kind === 'open' && link.current.state.mode === 'control' ? screen.current.room() : null;
    if (room === null || (room.cols === cols && room.rows === rows)) return;
    screen.current.resize(room.cols, room.rows);
    link.current?.resize(room.cols, room.rows);
  }, [fontSize, screenReader]);

  useEffect(() => {
    if (isOver(state)) markControl(session_id, false);
  }, [state, session_id]);

  // Hides the bell after a moment.
  useEffect(() => {
    if (rings === 0) return;
    const timer = window.setTimeout(() => setRings(0), 1_500);
    return () => window.clearTimeout(timer);
  }, [rings]);

  useEffect(() => {
    if (!full) return;
    void document.documentElement.requestFullscreen?.().catch(() => {});
    const onChange = () => {
      if (document.fullscreenElement === null) setFull(false);
    };
    document.addEventListener('fullscreenchange', onChange);
    return () => {
      document.removeEventListener('fullscreenchange', onChange);
      if (document.fullscreenElement !== null) void document.exitFullscreen().catch(() => {});
    };
  }, [full]);

  const take = (wanted: TerminalMode) => {
    link.current?.take(wanted);
    if (wanted === 'control') screen.current?.focus();
  };
  const controls = state.kind === 'open' && state.mode === 'control';
  const over = isOver(state);

  return (
    <div
      className={classNames(
        'flex min-h-0 flex-col overflow-hidden bg-surface',
        full ? 'fixed inset-0 z-30' : 'h-full rounded-lg border',
        rings > 0 && 'ring-2 ring-warn',
      )}
    >
      <div
        ref={toolbar}
        role="toolbar"
        aria-label="Terminal"
        className="flex h-10 shrink-0 items-center gap-1 border-b px-2"
      >
        <div className="min-w-0 flex-1 truncate px-1 text-sm" aria-live="polite">
          <LinkDot state={state} />
        </div>
        {controls && (
          <p id={`${id}-way-out`} className="flex items-center gap-1.5 text-muted text-xs max-md:sr-only">
            <Keys keys="Ctrl Shift L" /> leaves the terminal
          </p>
        )}
        {rings > 0 && (
          <span role="status" className="flex items-center gap-1 text-warn text-xs">
            <BellRing aria-hidden="true" className="size-3.5" /> Bell
          </span>
        )}
        {!over && <Viewers attached={session?.attached ?? []} onOpen={() => refetchTerminal(session_id)} />}
        {state.kind === 'open' && state.mode === 'view' && (
          <Button small onClick={() => take('control')}>
            Take control
          </Button>
        )}
        <IconButton
          small
          label="Search the screen (Ctrl Shift F)"
          icon={<Search className="size-4" />}
          onClick={() => setSearching(!searching)}
        />
        <ScreenMenu />
        <IconButton
          small
          label={full ? 'Leave full screen' : 'Full screen'}
          icon={full ? <Minimize2 className="size-4" /> : <Maximize2 className="size-4" />}
          onClick={() => setFull(!full)}
        />
        {controls && (
          <Button small look="danger" onClick={() => setEnding(true)}>
            End
          </Button>
        )}
      </div>
      {searching && (
        <ScreenSearch
          onFind={(text, backwards) => screen.current?.find(text, backwards) ?? false}
          onClose={() => {
            setSearching(false);
            screen.current?.endFind();
            screen.current?.focus();
          }}
        />
      )}
      <div className="relative min-h-0 flex-1 bg-surface">
        <div ref={place} className="absolute inset-0 overflow-auto py-1 pl-2" data-terminal />
      </div>
      <LinkNotice state={state} reason={session?.end_reason ?? null} onTake={take} onReplay={onReplay} />
      {!over && controls && (
        <KeyRow
          ctrl={ctrl}
          onCtrl={holdCtrl}
          onKey={(key: ExtraKey) => link.current?.type(extraKey(key, screen.current?.applicationCursor ?? false))}
          onText={(text) => {
            link.current?.type(ctrl ? withCtrl(text) : text);
            if (ctrl) holdCtrl(false);
          }}
        />
      )}
      <Confirm
        open={asked !== null}
        onOpenChange={(open) => !open && setAsked(null)}
        title="Paste several lines?"
        action="Paste"
        danger={false}
        onConfirm={async () => {
          if (asked !== null) screen.current?.paste(asked);
          window.setTimeout(() => screen.current?.focus());
        }}
      >
        <p>A shell may run each line immediately.</p>
        <Preview text={asked ?? ''} />
      </Confirm>
      <Confirm
        open={linkAsked !== null}
        onOpenChange={(open) => !open && setLinkAsked(null)}
        title="Open this link?"
        action="Open in a new tab"
        danger={false}
        onConfirm={async () => {
          if (linkAsked !== null) window.open(linkAsked, '_blank', 'noopener,noreferrer');
        }}
      >
        <p>The machine printed this link. It may be unsafe.</p>
        <Preview text={linkAsked ?? ''} />
      </Confirm>
      <Confirm
        open={ending}
        onOpenChange={setEnding}
        title="End this session?"
        action="End the session"
        onConfirm={() => closeTerminal(session_id)}
      >
        This ends its shell and all programs in it. The recording is kept.
      </Confirm>
    </div>
  );
}

const isOver = ({ kind }: LinkState): boolean => kind === 'exited' || kind === 'ended';

const Preview = ({ text }: { readonly text: string }) => (
  <pre className="mt-2 max-h-48 overflow-auto whitespace-pre-wrap break-all rounded-md border bg-raised p-2 font-mono text-text text-xs">
    {visibleText(cutText(text, 4_000))}
    {text.length > 4_000 && '…'}
  </pre>
);

const looks: Record<LinkState['kind'], readonly [Tone, string]> = {
  connecting: ['info', 'Connecting…'],
  open: ['good', 'In control'],
  lost: ['warn', 'Connection lost, reconnecting…'],
  taken_over: ['warn', 'Taken over'],
  exited: ['neutral', 'Ended'],
  ended: ['neutral', 'Ended'],
};

function LinkDot({ state }: { readonly state: LinkState }) {
  const [tone, text] = looks[state.kind];
  return (
    <Dot tone={tone} live={state.kind === 'connecting' || state.kind === 'lost'}>
      {state.kind === 'open' && state.mode === 'view' ? 'Watching' : text}
    </Dot>
  );
}

function LinkNotice({
  state,
  reason,
  onTake,
  onReplay,
}: {
  readonly state: LinkState;
  /** Why the session ended; null if unknown. */
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

/** Searches the screen and the scrollback. */
function ScreenSearch({
  onFind,
  onClose,
}: {
  readonly onFind: (text: string, backwards: boolean) => boolean;
  readonly onClose: () => void;
}) {
  const [text, setText] = useState('');
  const [found, setFound] = useState(true);
  const find = (backwards: boolean) => setFound(text === '' || onFind(text, backwards));
  return (
    <form
      role="search"
      className="flex shrink-0 items-center gap-1 border-b px-2 py-1.5"
      onSubmit={(event) => {
        event.preventDefault();
        find(true);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose();
      }}
    >
      <div className="min-w-0 flex-1 sm:max-w-72">
        <Input
          label="Search the screen"
          hideLabel
          placeholder="Search the screen"
          autoFocus
          value={text}
          aria-invalid={!found}
          onChange={(event) => {
            setText(event.target.value);
            setFound(event.target.value === '' || onFind(event.target.value, true));
          }}
        />
      </div>
      <IconButton small label="Previous match" type="submit" icon={<ArrowUp className="size-4" />} />
      <IconButton small label="Next match" icon={<ArrowDown className="size-4" />} onClick={() => find(false)} />
      <span role="status" className="flex-1 text-muted text-xs">
        {found ? '' : 'Not found'}
      </span>
      <IconButton small label="Close search" icon={<X className="size-4" />} onClick={onClose} />
    </form>
  );
}
