import { useEffect, useState } from 'react';

/** Whether the page is in full screen, and its setter. Follows the browser when the operator leaves full screen. */
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
