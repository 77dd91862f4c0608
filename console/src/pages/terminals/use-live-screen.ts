import { type RefObject, useEffect, useRef, useState } from 'react';
import type { LinkState } from '../../api/terminals/terminal-link.ts';
import type { TerminalMode } from '../../api/terminals/terminals.ts';
import { useTerminalPreferences } from '../../terminal/preferences.ts';
import { LiveScreen } from './live-screen.ts';

const bellMs = 1_500;

/** An action that the operator must confirm: a paste or a link. */
export type TerminalQuestion = { readonly kind: 'paste' | 'link'; readonly text: string };

export interface LiveScreenState {
  /** The element that contains the screen. */
  readonly container: RefObject<HTMLDivElement | null>;
  readonly live: RefObject<LiveScreen | null>;
  readonly state: LinkState;
  readonly ctrlHeld: boolean;
  /** True for a moment after the terminal rings its bell. */
  readonly rings: boolean;
  readonly question: TerminalQuestion | null;
  readonly setQuestion: (question: TerminalQuestion | null) => void;
  readonly searching: boolean;
  readonly setSearching: (searching: boolean) => void;
}

/**
 * Connects a screen to a terminal session until the component unmounts.
 * @param wsUrl WebSocket URL of a session that was just opened; null attaches to an existing one
 * @param describedBy id of the element that explains how to leave the terminal
 * @param onLeave called when the operator presses the shortcut that leaves the terminal
 */
export function useLiveScreen(
  session_id: string,
  mode: TerminalMode,
  wsUrl: string | null,
  describedBy: string,
  onLeave: () => void,
): LiveScreenState {
  const container = useRef<HTMLDivElement>(null);
  const live = useRef<LiveScreen | null>(null);
  const [state, setState] = useState<LinkState>({ kind: 'connecting' });
  const [ctrlHeld, setCtrlHeld] = useState(false);
  const [bells, setBells] = useState(0);
  const [question, setQuestion] = useState<TerminalQuestion | null>(null);
  const [searching, setSearching] = useState(false);
  const { fontSize, screenReader } = useTerminalPreferences();

  // biome-ignore lint/correctness/useExhaustiveDependencies: a session has one connection; the effect below applies preferences
  useEffect(() => {
    if (container.current === null) return;
    const options = { session_id, mode, fontSize, screenReader };
    const created = new LiveScreen(container.current, options, {
      stateChanged: setState,
      ctrlChanged: setCtrlHeld,
      bell: () => setBells((count) => count + 1),
      pasteRequested: (text) => setQuestion({ kind: 'paste', text }),
      linkRequested: (text) => setQuestion({ kind: 'link', text }),
      searchRequested: () => setSearching(true),
      left: onLeave,
    });
    created.screen.terminal.textarea?.setAttribute('aria-describedby', describedBy);
    live.current = created;
    created.start(wsUrl);
    return () => created.dispose();
  }, [session_id]);

  useEffect(() => live.current?.setPreferences({ fontSize, screenReader }), [fontSize, screenReader]);

  useEffect(() => {
    if (bells === 0) return;
    const timer = window.setTimeout(() => setBells(0), bellMs);
    return () => window.clearTimeout(timer);
  }, [bells]);

  return { ...{ container, live, state, ctrlHeld, question, setQuestion, searching, setSearching }, rings: bells > 0 };
}
