import { Page } from '../../parts/page.tsx';

export function ModulesPage() {
  return <Page title="Modules">{null}</Page>;
}
