// Sets the theme before anything is painted. "auto" follows the system.
(() => {
  let theme = "auto";
  try { theme = localStorage.getItem("perdure.theme") || "auto"; } catch { /* storage is off */ }
  if (theme !== "auto") document.documentElement.dataset.theme = theme;
})();
