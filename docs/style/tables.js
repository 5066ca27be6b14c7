// Each cell of a table knows the name of its column, which site.css shows on a phone.
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const columns = [...table.querySelectorAll("thead th")].map(cell => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr"))
      [...row.cells].forEach((cell, i) => { if (columns[i]) cell.dataset.column = columns[i]; });
  }
});
