"""The page of the job `report`: one HTML file that needs nothing but itself."""
