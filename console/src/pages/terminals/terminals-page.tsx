import { Page } from '../../parts/page.tsx';

export function TerminalsPage() {
  return <Page title="Terminals">{null}</Page>;
}
