import { useEffect, useState } from 'react';

/**
 * Returns whether the page is in full screen, and a function that changes it. Also detects when the operator leaves
 * full screen with the browser's controls.
 */
export function useFullScreen(): [boolean, (full: boolean) => void] {
  const [full, setFull] = useState(false);
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
  return [full, setFull];
}
