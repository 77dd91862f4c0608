import { Link, Outlet, useLocation, useRouter } from '@tanstack/react-router';
import { CircleHelp, Menu as MenuIcon, Search } from 'lucide-react';
import { lazy, Suspense, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { loadCode } from '../api/live/load-code.ts';
import { useLiveState } from '../api/live/use-live-state.ts';
import { useRepeatedFailure } from '../api/live/use-repeated-failure.ts';
import { usePerson } from '../api/sign-in/use-session.ts';
import { Dot } from '../parts/badge.tsx';
import { Button, IconButton } from '../parts/button.tsx';
import { classNames } from '../parts/class-names.ts';
import { Keys } from '../parts/kbd.tsx';
import { Text } from '../parts/text.tsx';
import { Bell } from './bell.tsx';
import { Mark } from './mark.tsx';
import { sections } from './navigation.ts';
import { useShortcuts } from './shortcuts.ts';

const Palette = lazy(() => loadCode(() => import('./palette/palette.tsx')));
const Help = lazy(() => loadCode(() => import('./help.tsx')));
const SideMenu = lazy(() => loadCode(() => import('./side-menu.tsx')));
const PersonMenu = lazy(() => loadCode(() => import('./person-menu.tsx')));

/** The layout around every page: navigation, command palette, and connection state. */
export function Shell() {
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const [menu, setMenu] = useState(false);
  const openPalette = useCallback(() => setPalette(true), []);
  const openHelp = useCallback(() => setHelp(true), []);
  useShortcuts({ openPalette, openHelp });
  const content = useRef<HTMLElement>(null);
  useLayoutEffect(removeOutlines, []);
  useFocusAfterNavigation(content);
  return (
    <div className="flex h-dvh flex-col">
      {/* biome-ignore lint/a11y/useValidAnchor: the target is an element of this page */}
      <a
        href="#content"
        onClick={(event) => {
          // Following the link would set the URL fragment, which is reserved for links to lines.
          event.preventDefault();
          content.current?.focus();
        }}
        className="sr-only rounded-md bg-accent px-3 py-1.5 text-on-accent focus:not-sr-only focus:absolute focus:top-2 focus:left-2 focus:z-50"
      >
        Skip to content
      </a>
      <div className="flex min-h-0 flex-1">
        <aside className="hidden w-54 shrink-0 flex-col border-r bg-surface lg:flex">
          <Brand />
          <Navigation />
        </aside>
        <div className="flex min-w-0 flex-1 flex-col">
          <header className="flex h-12 shrink-0 items-center gap-2 border-b bg-surface px-4 max-sm:h-15 max-sm:gap-3 max-sm:px-2">
            <IconButton
              label="Menu"
              className="lg:hidden"
              aria-haspopup="dialog"
              onClick={() => setMenu(true)}
              icon={<MenuIcon className="size-5" />}
            />
            <button
              type="button"
              onClick={openPalette}
              className="flex h-8 min-w-0 max-w-md flex-1 items-center gap-2 rounded-md border bg-canvas max-sm:h-11 px-2.5 text-left text-muted text-sm hover:border-line-strong"
            >
              <Search aria-hidden="true" className="size-4 shrink-0" />
              <span className="flex-1 truncate">Search or go to…</span>
              <span aria-hidden="true" className="hidden sm:inline">
                <Keys keys="Mod K" />
              </span>
            </button>
            <div className="ml-auto flex items-center gap-1">
              <LiveIndicator />
              <Bell />
              <IconButton
                label="Keyboard shortcuts"
                className="max-sm:hidden"
                onClick={openHelp}
                icon={<CircleHelp className="size-4.5" />}
              />
              <PersonButton />
            </div>
          </header>
          <LostBanner />
          <main ref={content} id="content" tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
            <Outlet />
          </main>
        </div>
      </div>
      <Suspense>
        {palette && <Palette onClose={() => setPalette(false)} onHelp={openHelp} />}
        {help && <Help onClose={() => setHelp(false)} />}
        {menu && (
          <SideMenu onClose={() => setMenu(false)}>
            <Brand />
            <Navigation onGo={() => setMenu(false)} />
          </SideMenu>
        )}
      </Suspense>
    </div>
  );
}

/** Removes the outlines that index.html shows while the console loads. */
export const removeOutlines = (): void => document.getElementById('outlines')?.remove();

/** Moves the focus to the content after navigation, unless the focus is already in the page or a dialog. */
function useFocusAfterNavigation(content: React.RefObject<HTMLElement | null>): void {
  const router = useRouter();
  useEffect(
    () =>
      router.subscribe('onRendered', ({ pathChanged, fromLocation }) => {
        if (!pathChanged || fromLocation === undefined) return;
        const { activeElement } = document;
        const isElsewhere = activeElement?.closest('#content,[role=dialog],[role=alertdialog]') == null;
        if (isElsewhere) content.current?.focus({ preventScroll: true });
      }),
    [router, content],
  );
}

const Brand = () => (
  <Link to="/" className="flex h-12 shrink-0 items-center gap-2.5 px-4">
    <Mark className="size-6" />
    <span className="font-semibold tracking-tight">Muster</span>
  </Link>
);

function Navigation({ onGo }: { readonly onGo?: () => void }) {
  const { pathname } = useLocation();
  return (
    <nav aria-label="Main" className="min-h-0 flex-1 overflow-y-auto px-2 pb-4">
      {sections.map((section) => (
        <div key={section.label} className="mt-3 first:mt-1">
          <div className="px-2 pb-1 font-medium text-2xs text-muted">{section.label}</div>
          <ul>
            {section.destinations.map(({ path, label, icon: Icon }) => {
              const isHere = path === '/' ? pathname === '/' : pathname === path || pathname.startsWith(`${path}/`);
              return (
                <li key={path}>
                  <Link
                    to={path as '/'}
                    onClick={onGo}
                    aria-current={isHere ? 'page' : undefined}
                    className={classNames(
                      'flex h-8 items-center gap-2.5 rounded-md px-2 text-sm max-lg:h-11',
                      isHere ? 'bg-accent-soft font-medium text-accent' : 'text-muted hover:bg-hover hover:text-text',
                    )}
                  >
                    <Icon aria-hidden="true" className="size-4 shrink-0" />
                    {label}
                  </Link>
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function LiveIndicator() {
  const state = useLiveState();
  const lost = state === 'lost';
  return (
    <span
      className="px-1.5 text-muted text-xs max-sm:hidden"
      title={lost ? 'The orchestrator does not answer' : 'This page updates automatically'}
    >
      <Dot tone={lost ? 'bad' : state === 'live' ? 'good' : 'neutral'} live={lost}>
        {lost ? 'Not connected' : state === 'live' ? 'Live' : 'Connecting'}
      </Dot>
    </span>
  );
}

function LostBanner() {
  const state = useLiveState();
  const failure = useRepeatedFailure();
  return (
    <div role="status">
      {state === 'lost' && (
        <div className="border-b bg-warn-soft px-4 py-1.5 text-sm text-warn">
          The orchestrator is not responding. This page may be out of date. The console reconnects automatically, and
          your input is kept.
        </div>
      )}
      {state !== 'lost' && failure !== null && (
        <div className="border-b bg-warn-soft px-4 py-1.5 text-sm text-warn">
          Some data cannot be loaded: <Text text={failure.message} maxLength={300} />. The console keeps trying.
        </div>
      )}
    </div>
  );
}

function PersonButton() {
  const person = usePerson();
  const [isUsed, setUsed] = useState(false);
  const trigger = (
    <Button look="quiet" aria-haspopup="menu" className="max-w-40 px-1.5 max-sm:w-11" onClick={() => setUsed(true)}>
      <span
        aria-hidden="true"
        className="flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft font-semibold text-accent text-xs uppercase"
      >
        {[...person.username][0]}
      </span>
      <span className="sr-only">Signed in as</span>
      <span className="truncate text-text max-sm:sr-only">{person.username}</span>
    </Button>
  );
  return isUsed ? (
    <Suspense fallback={trigger}>
      <PersonMenu trigger={trigger} />
    </Suspense>
  ) : (
    trigger
  );
}
